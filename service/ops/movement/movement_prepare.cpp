// Kernels of the movement family: each is one or a few strided copies, prepared from local types and attributes.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "service/kernels/fused/concatenation.h"
#include "service/kernels/movement/index_value.h"
#include "service/kernels/movement/movement.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/movement/movement.h"
#include "service/ops/movement/small_movement.h"

namespace meshd::ops {
namespace {

using kernels::RowCopies;
using kernels::StridedCopy;
using tensor::Dims;

constexpr size_t kMaxRank = 64;
constexpr std::string_view kGlobalUpdateDims = "meshd.global_update_dims";

int64_t elem_bytes(const ir::Type& type) { return tensor::size_bytes(type.dtype()); }
int64_t element_count(const ir::Type& type) { return tensor::element_count(type.dims()); }

/// A kernel that is one copy from operand 0, which is read from element `offset` on.
PreparedKernel one_copy(const OpView& local, const Dims& src_strides, int64_t offset) {
  const ir::Type& to = local.results[0];
  const int64_t elem = elem_bytes(to);
  auto copy = std::make_shared<const StridedCopy>(to.dims(), tensor::row_major_strides(to.dims()), src_strides, elem);
  PreparedKernel kernel;
  kernel.work_count = copy->work_count();
  kernel.bytes = 2.0 * static_cast<double>(copy->byte_count());
  kernel.run = [copy, skip = offset * elem](const KernelCall& call) {
    copy->run(call.results[0], call.operands[0] + skip, call.begin, call.end);
  };
  kernel.small = small_copy(to, src_strides, offset);
  return kernel;
}

/// Linear index, in row-major `dims`, of the window of `window` elements whose start indices are operands first...
int64_t window_offset(const KernelCall& call, size_t first, tensor::DType dtype, const Dims& dims, const Dims& window) {
  int64_t offset = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    offset = offset * dims[d] +
             kernels::clamp_start(kernels::read_index(call.operands[first + d], dtype), window[d], dims[d]);
  }
  return offset;
}

tensor::DType start_dtype(const OpView& local, size_t first) {
  return first < local.operands.size() ? local.operands[first].dtype() : tensor::DType::kInt32;
}

/// The attributes with the integers of `name` replaced.
ir::AttributeList replaced(const OpView& view, std::string_view name, std::vector<int64_t> values) {
  ir::AttributeList list = attributes_of(view);
  ir::set(list, name, ir::int_array_attr(std::move(values)));
  return list;
}

/// The work items of pad and dynamic_update_slice: rows along the outermost dimension, small ones grouped.
struct RowWorkItems {
  int64_t rows_per_work_item = 1;
  int64_t work_count = 0;

  RowWorkItems(int64_t rows, int64_t row_bytes) {
    constexpr int64_t kRowsBytes = 256 << 10;
    if (rows == 0 || row_bytes == 0) return;
    rows_per_work_item = std::max<int64_t>(1, kRowsBytes / row_bytes);
    work_count = core::ceil_div(rows, rows_per_work_item);
  }
};

/// Of one row of one element where there are no dims.
std::shared_ptr<const RowCopies> make_row_copies(const Dims& extent, const Dims& dst_strides, const Dims& src_strides,
                                                 int64_t elem, int64_t block_rows) {
  if (extent.empty()) return std::make_shared<const RowCopies>(Dims{1}, Dims{1}, Dims{1}, elem, block_rows);
  return std::make_shared<const RowCopies>(extent, dst_strides, src_strides, elem, block_rows);
}

Dims without_first(const Dims& dims) { return {dims.begin() + (dims.empty() ? 0 : 1), dims.end()}; }
int64_t first_or_one(const Dims& dims) { return dims.empty() ? 1 : dims[0]; }

}  // namespace

PreparedKernel prepare_reshape(const OpView& local) {
  const int64_t count = element_count(local.results[0]);
  const Dims flat = {count};
  const Dims one = {1};
  auto copy = std::make_shared<const StridedCopy>(flat, one, one, elem_bytes(local.results[0]));
  PreparedKernel kernel;
  kernel.work_count = copy->work_count();
  kernel.bytes = 2.0 * static_cast<double>(copy->byte_count());
  kernel.in_place = {{0, 0}};
  kernel.run = [copy](const KernelCall& call) {
    if (call.results[0] != call.operands[0]) copy->run(call.results[0], call.operands[0], call.begin, call.end);
  };
  return kernel;
}

PreparedKernel prepare_transpose(const OpView& local) {
  const Dims strides = tensor::row_major_strides(local.operands[0].dims());
  Dims src;
  for (const int64_t d : ir::ints(attributes_of(local), "permutation")) src.push_back(strides[static_cast<size_t>(d)]);
  return one_copy(local, src, 0);
}

PreparedKernel prepare_broadcast_in_dim(const OpView& local) {
  const ir::Type& from = local.operands[0];
  const ir::Type& to = local.results[0];
  const Dims strides = tensor::row_major_strides(from.dims());
  const std::vector<int64_t> dims = ir::ints(attributes_of(local), "broadcast_dimensions");
  Dims src(to.dims().size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (from.dims()[i] != 1) src[static_cast<size_t>(dims[i])] = strides[i];
  }
  PreparedKernel kernel = one_copy(local, src, 0);
  kernel.bytes = static_cast<double>(element_count(from) + element_count(to)) * static_cast<double>(elem_bytes(to));
  return kernel;
}

PreparedKernel prepare_slice(const OpView& local) {
  Dims strides = tensor::row_major_strides(local.operands[0].dims());
  const std::vector<int64_t> starts = ir::ints(attributes_of(local), "start_indices");
  const std::vector<int64_t> steps = ir::ints(attributes_of(local), "strides");
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    offset += starts[d] * strides[d];
    strides[d] *= steps[d];
  }
  return one_copy(local, strides, offset);
}

PreparedKernel prepare_reverse(const OpView& local) {
  const Dims& dims = local.results[0].dims();
  Dims strides = tensor::row_major_strides(dims);
  int64_t offset = 0;
  for (const int64_t reversed : ir::ints(attributes_of(local), "dimensions")) {
    const auto d = static_cast<size_t>(reversed);
    offset += std::max<int64_t>(0, dims[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return one_copy(local, strides, offset);
}

PreparedKernel prepare_dynamic_slice(const OpView& local) {
  const ir::Type& from = local.operands[0];
  const Dims window = local.results[0].dims();
  const Dims dims = from.dims();
  const int64_t elem = elem_bytes(from);
  const tensor::DType dtype = start_dtype(local, 1);
  auto copy = std::make_shared<const StridedCopy>(window, tensor::row_major_strides(window),
                                                  tensor::row_major_strides(dims), elem);
  PreparedKernel kernel;
  kernel.work_count = copy->work_count();
  kernel.bytes = 2.0 * static_cast<double>(copy->byte_count());
  kernel.run = [copy, dims, window, elem, dtype](const KernelCall& call) {
    const int64_t offset = window_offset(call, 1, dtype, dims, window);
    copy->run(call.results[0], call.operands[0] + offset * elem, call.begin, call.end);
  };
  kernel.small = small_row({.dtype = from.dtype(), .index_dtype = dtype, .indices = starts_of_window(dims, window, 1)},
                           dims, window);
  return kernel;
}

PreparedKernel prepare_dynamic_update_slice(const OpView& local) {
  const Dims dims = local.operands[0].dims();
  const Dims window = local.operands[1].dims();
  // A sharded operand: starts are global and are clamped to the global dims, each shard takes the elements that it
  // contains.
  const Dims global_dims = ir::ints_or(attributes_of(local), kGlobalDims, dims);
  const Dims global_window = ir::ints_or(attributes_of(local), kGlobalUpdateDims, window);
  const size_t rank = dims.size();
  if (rank > kMaxRank)
    reject(local, "unsupported_op", "dynamic_update_slice of more than 64 dimensions is not supported");
  const int64_t elem = elem_bytes(local.operands[0]);
  const tensor::DType dtype = start_dtype(local, 2);
  const int64_t rows = first_or_one(dims);
  const int64_t row_bytes = tensor::element_count(without_first(dims)) * elem;
  const RowWorkItems work_items(rows, row_bytes);
  PreparedKernel kernel;
  kernel.work_count = work_items.work_count;
  kernel.bytes = 2.0 * static_cast<double>(element_count(local.operands[1]) * elem);
  kernel.in_place = {{0, 0}};
  kernel.uses_offsets = true;
  kernel.run = [=](const KernelCall& call) {
    const int64_t begin = call.begin * work_items.rows_per_work_item;
    const int64_t end = std::min(rows, call.end * work_items.rows_per_work_item);
    if (begin >= end) return;
    if (call.results[0] != call.operands[0]) {
      std::memcpy(call.results[0] + begin * row_bytes, call.operands[0] + begin * row_bytes,
                  static_cast<size_t>((end - begin) * row_bytes));
    }
    std::array<int64_t, kMaxRank> to;
    std::array<int64_t, kMaxRank> from;
    std::array<int64_t, kMaxRank> extent;
    for (size_t d = 0; d < rank; ++d) {
      int64_t start = 0;
      if (global_window[d] != global_dims[d]) {
        start =
            kernels::clamp_start(kernels::read_index(call.operands[2 + d], dtype), global_window[d], global_dims[d]);
        if (call.result_offsets != nullptr) start -= call.result_offsets[d];
      }
      to[d] = std::max(start, d == 0 ? begin : int64_t{0});
      from[d] = to[d] - start;
      extent[d] = std::min(start + window[d], d == 0 ? end : dims[d]) - to[d];
      if (extent[d] <= 0) return;
    }
    kernels::copy_block(call.results[0], dims, {to.data(), rank}, call.operands[1], window, {from.data(), rank},
                        {extent.data(), rank}, elem);
  };
  if (global_dims == dims) {
    kernel.small = small_row({.dtype = local.operands[0].dtype(),
                              .index_dtype = dtype,
                              .written = 1,
                              .indices = starts_of_window(dims, window, 2)},
                             dims, window);
  }
  return kernel;
}

PreparedKernel prepare_concatenate(const OpView& local) {
  return prepare_concatenate_of(local, std::vector<std::optional<StridedView>>(local.operands.size()), {});
}

PreparedKernel prepare_concatenate_of(const OpView& local, const std::vector<std::optional<StridedView>>& views,
                                      const std::vector<ComputedOperands>& computed) {
  const ir::Type& to = local.results[0];
  const auto dim = static_cast<size_t>(ir::int_or(attributes_of(local), "dimension", 0));
  const int64_t elem = elem_bytes(to);
  std::vector<bool> is_computed(local.operands.size(), false);
  for (const ComputedOperands& loop : computed) {
    for (const size_t operand : loop.operands) is_computed[operand] = true;
  }
  std::vector<StridedView> operands;  // of the small form, which computes nothing
  std::vector<kernels::CopiedPart> copied;
  std::vector<int64_t> starts;
  int64_t start = 0;
  for (size_t i = 0; i < local.operands.size(); ++i) {
    const Dims& from = local.operands[i].dims();
    operands.push_back(views[i] ? *views[i] : StridedView{tensor::row_major_strides(from)});
    if (!is_computed[i]) {
      copied.push_back({.operand = static_cast<int>(copied.size()),
                        .offset = operands[i].offset,
                        .strides = operands[i].strides,
                        .size = from[dim],
                        .start = start});
    }
    starts.push_back(start);
    start += from[dim];
  }
  std::vector<kernels::ComputedParts> loops;
  auto first_operand = static_cast<int>(copied.size());
  for (const ComputedOperands& loop : computed) {
    kernels::ComputedParts& parts = loops.emplace_back(kernels::ComputedParts{loop.loop, first_operand, {}});
    for (const size_t operand : loop.operands)
      parts.outputs.push_back({.size = local.operands[operand].dims()[dim], .start = starts[operand]});
    first_operand += loop.read_count;
  }
  auto concatenation = std::make_shared<const kernels::Concatenation>(to.dims(), dim, elem, copied, loops);
  PreparedKernel kernel;
  kernel.work_count = concatenation->work_count();
  kernel.bytes = concatenation->copied_bytes();
  kernel.passes_checkpoints = true;
  kernel.code_bytes = concatenation->code_bytes();
  kernel.run = [concatenation](const KernelCall& call) {
    concatenation->run(call.operands, call.results[0], call.begin, call.end, call.checkpoint);
  };
  if (computed.empty()) kernel.small = small_concatenate(local, operands, dim);
  return kernel;
}

PreparedKernel prepare_pad(const OpView& local) {
  const ir::Type& from = local.operands[0];
  const Dims dims = local.results[0].dims();
  const int64_t elem = elem_bytes(from);
  const std::vector<int64_t> low = ir::ints(attributes_of(local), "edge_padding_low");
  const std::vector<int64_t> interior = ir::ints(attributes_of(local), "interior_padding");
  const Dims src_strides = tensor::row_major_strides(from.dims());
  const Dims dst_strides = tensor::row_major_strides(dims);

  // Operand indices first..first+count-1 of each dimension land inside the result, `step` apart from `place` on.
  const size_t rank = dims.size();
  Dims count(rank);
  Dims place(rank);
  Dims step(rank);
  Dims copy_strides(rank);
  int64_t src_offset = 0;
  int64_t row_offset = 0;  // of the first copied element within its row
  bool rows_are_whole = true;
  for (size_t d = 0; d < rank; ++d) {
    step[d] = interior[d] + 1;
    const int64_t first = low[d] < 0 ? core::ceil_div(-low[d], step[d]) : 0;
    place[d] = low[d] + first * step[d];
    const int64_t room = place[d] < dims[d] ? core::ceil_div(dims[d] - place[d], step[d]) : 0;
    count[d] = std::max<int64_t>(0, std::min(from.dims()[d] - first, room));
    src_offset += first * src_strides[d];
    copy_strides[d] = dst_strides[d] * step[d];
    if (d > 0) {
      row_offset += place[d] * dst_strides[d];
      rows_are_whole &= count[d] == dims[d];
    }
  }
  if (std::count(count.begin(), count.end(), 0) != 0) {
    row_offset = 0;  // nothing is copied
    src_offset = 0;
  }
  const int64_t rows = first_or_one(dims);
  const int64_t row_elements = tensor::element_count(without_first(dims));
  const int64_t row_bytes = row_elements * elem;
  const int64_t copied_rows = std::count(count.begin(), count.end(), 0) != 0 ? 0 : first_or_one(count);
  const int64_t first_row = rank == 0 ? 0 : place[0];
  const int64_t row_step = rank == 0 ? 1 : step[0];
  const RowWorkItems work_items(rows, row_bytes);
  // Short rows are filled and copied some at a time.
  constexpr int64_t kBlockBytes = 32 << 10;
  const int64_t block_rows =
      std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(1, row_bytes), 1, std::max<int64_t>(1, rows));
  std::shared_ptr<const RowCopies> copies;
  if (copied_rows > 0) copies = make_row_copies(count, copy_strides, src_strides, elem, block_rows);
  PreparedKernel kernel;
  kernel.work_count = work_items.work_count;
  kernel.bytes =
      static_cast<double>(row_bytes) * static_cast<double>(rows) + static_cast<double>(element_count(from) * elem);
  kernel.run = [=](const KernelCall& call) {
    const int64_t end = std::min(rows, call.end * work_items.rows_per_work_item);
    std::byte* const result = call.results[0];
    for (int64_t row = call.begin * work_items.rows_per_work_item; row < end; row += block_rows) {
      const int64_t stop = std::min(end, row + block_rows);
      // Rows of the operand that land in [row, stop).
      const auto first_from = [&](int64_t at) {
        return at <= first_row ? 0 : std::min(copied_rows, core::ceil_div(at - first_row, row_step));
      };
      const int64_t copied = first_from(row);
      const int64_t copied_end = first_from(stop);
      if (!rows_are_whole || copied_end - copied < stop - row)
        kernels::fill_elements(result + row * row_bytes, call.operands[1], (stop - row) * row_elements, elem);
      if (copied < copied_end)
        copies->run(result + first_row * row_bytes + row_offset * elem, call.operands[0] + src_offset * elem, copied,
                    copied_end);
    }
  };
  kernel.small = small_pad(local);
  return kernel;
}

ir::AttributeList localize_slice(const OpView& global, const OpView& local) {
  std::vector<int64_t> limits = ir::ints(attributes_of(global), "limit_indices");
  for (size_t d = 0; d < limits.size(); ++d) {
    const int64_t size = local.operands[0].dims()[d];
    if (size != global.operands[0].dims()[d]) limits[d] = size;
  }
  return replaced(global, "limit_indices", std::move(limits));
}

ir::AttributeList localize_dynamic_slice(const OpView& global, const OpView& local) {
  return replaced(global, "slice_sizes", local.results[0].dims());
}

ir::AttributeList localize_dynamic_update_slice(const OpView& global, const OpView& local) {
  ir::AttributeList list = attributes_of(global);
  if (global.operands[0].dims() == local.operands[0].dims()) return list;
  list.emplace_back(std::string(kGlobalDims), ir::int_array_attr(global.operands[0].dims()));
  list.emplace_back(std::string(kGlobalUpdateDims), ir::int_array_attr(global.operands[1].dims()));
  return list;
}

}  // namespace meshd::ops
