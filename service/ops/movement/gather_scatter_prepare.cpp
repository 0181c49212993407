// Kernels of gather and scatter from local types: windows have the sizes of the local slices, whatever the global
// slice_sizes are.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "service/kernels/movement/gather.h"
#include "service/kernels/movement/gathered_fold.h"
#include "service/kernels/movement/scatter.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/movement/gather_scatter.h"
#include "service/ops/movement/small_movement.h"

namespace meshd::ops {
namespace {

using tensor::Dims;

// What localize_scatter adds: operand dims of which a window has one index.
constexpr std::string_view kPointDims = "meshd.point_dims";

template <typename List>
List picked(const List& list, const std::vector<int64_t>& at) {
  List out;
  for (const int64_t i : at) out.push_back(list[static_cast<size_t>(i)]);
  return out;
}

/// Sizes of a window in each operand dim.
Dims window_sizes(const WindowDims& dims, int64_t operand_rank, const Dims& slices) {
  Dims sizes(static_cast<size_t>(operand_rank), 1);
  const std::vector<int64_t> windows = window_dims(dims, operand_rank);
  for (size_t i = 0; i < windows.size(); ++i)
    sizes[static_cast<size_t>(windows[i])] = slices[static_cast<size_t>(dims.offset[i])];
  return sizes;
}

kernels::IndexTable index_table(const WindowDims& dims, const ir::Type& operand, const ir::Type& indices,
                                const Dims& slices) {
  const Dims operand_strides = tensor::row_major_strides(operand.dims());
  const Dims index_strides = tensor::row_major_strides(indices.dims());
  const Dims slice_strides = tensor::row_major_strides(slices);
  const std::vector<int64_t> tuples = tuple_dims(dims, indices.rank());
  const std::vector<int64_t> batch = batch_dims(dims, static_cast<int64_t>(slices.size()));
  const Dims window = window_sizes(dims, operand.rank(), slices);
  kernels::IndexTable table;
  table.dtype = indices.dtype();
  table.batch = picked(slices, batch);
  table.batch_strides = picked(index_strides, tuples);
  table.slice_strides = picked(slice_strides, batch);
  for (const int64_t tuple : tuples) {
    const auto at = std::find(dims.indices_batching.begin(), dims.indices_batching.end(), tuple);
    const bool is_batching = at != dims.indices_batching.end();
    const size_t which = static_cast<size_t>(at - dims.indices_batching.begin());
    table.operand_strides.push_back(is_batching ? operand_strides[static_cast<size_t>(dims.operand_batching[which])]
                                                : 0);
  }
  if (dims.index_vector_dim < indices.rank())
    table.component_stride = index_strides[static_cast<size_t>(dims.index_vector_dim)];
  for (const int64_t d : dims.index_map) {
    const auto at = static_cast<size_t>(d);
    table.components.push_back({operand.dims()[at] - window[at], operand_strides[at]});
  }
  table.merge_batch();
  return table;
}

/// The one window of a gather or scatter as a row; `small` has what else is to be said of it.
std::shared_ptr<const kernels::SmallStep> one_window(const kernels::IndexTable& table, const WindowDims& dims,
                                                     const ir::Type& operand, const Dims& slices, int indices,
                                                     kernels::DynamicRow row) {
  if (tensor::element_count(table.batch) != 1) return nullptr;
  const Dims strides = tensor::row_major_strides(operand.dims());
  const Dims window = window_sizes(dims, operand.rank(), slices);
  int64_t element = 0;
  for (const int64_t d : dims.index_map) {
    const auto at = static_cast<size_t>(d);
    row.indices.push_back({indices, element++, operand.dims()[at] - window[at], strides[at]});
  }
  row.dtype = operand.dtype();
  row.index_dtype = table.dtype;
  return small_row(std::move(row), operand.dims(), window);
}

/// Strides of the dims of a window in the operand.
Dims window_strides(const WindowDims& dims, const ir::Type& operand) {
  return picked(tensor::row_major_strides(operand.dims()), window_dims(dims, operand.rank()));
}

}  // namespace

PreparedKernel prepare_gather(const OpView& local) {
  const WindowDims dims = gather_dims(local);
  const ir::Type& operand = local.operands[0];
  const Dims& slices = local.results[0].dims();
  const kernels::IndexTable table = index_table(dims, operand, local.operands[1], slices);
  auto gather = std::make_shared<const kernels::Gather>(
      table, picked(slices, dims.offset), picked(tensor::row_major_strides(slices), dims.offset),
      window_strides(dims, operand), tensor::size_bytes(operand.dtype()));
  PreparedKernel kernel;
  // A dimension of no elements has nothing to read, not even for a clamped index.
  const bool is_empty = tensor::element_count(operand.dims()) == 0;
  kernel.work_count = is_empty ? 0 : gather->work_count();
  kernel.bytes = 2.0 * static_cast<double>(tensor::byte_count(local.results[0].tensor)) +
                 static_cast<double>(tensor::byte_count(local.operands[1].tensor));
  kernel.run = [gather](const KernelCall& call) {
    gather->run(call.operands[0], call.operands[1], call.results[0], call.begin, call.end);
  };
  kernel.small = one_window(table, dims, operand, slices, 1, {});
  return kernel;
}

std::optional<PreparedKernel> prepare_gathered_reduction(const OpView& gather, const OpView& reduction) {
  const WindowDims dims = gather_dims(gather);
  const ir::Type& operand = gather.operands[0];
  const Dims& slices = gather.results[0].dims();
  const tensor::DType dtype = operand.dtype();
  if (reduction.operands.size() != 2 || tensor::element_count(operand.dims()) == 0) return std::nullopt;
  // The tuples' dims come first, and all of them are reduced.
  const std::vector<int64_t> tuples = batch_dims(dims, static_cast<int64_t>(slices.size()));
  std::vector<int64_t> reduced = ir::ints(attributes_of(reduction), "dimensions");
  std::sort(reduced.begin(), reduced.end());
  if (reduced != tuples || (!tuples.empty() && tuples.back() + 1 != static_cast<int64_t>(tuples.size())))
    return std::nullopt;
  int64_t lanes = 1;
  const Dims window = picked(slices, dims.offset);
  const Dims strides = window_strides(dims, operand);
  for (size_t d = window.size(); d-- > 0; lanes *= window[d]) {
    if (window[d] != 1 && strides[d] != lanes) return std::nullopt;
  }
  const kernels::TileProgram body = compile_scalar_region(*reduction.function, reduction.regions[0]);
  const auto has_dtype = [&](uint16_t reg) { return body.registers[reg] == dtype; };
  if (body.outputs.size() != 1 || !has_dtype(0) || !has_dtype(1) || !has_dtype(body.outputs[0])) return std::nullopt;
  auto made = kernels::GatheredFold::make(index_table(dims, operand, gather.operands[1], slices), lanes, body, dtype);
  if (!made) return std::nullopt;
  const auto fold = std::make_shared<const kernels::GatheredFold>(*std::move(made));
  PreparedKernel kernel;
  kernel.work_count = fold->work_count();
  kernel.passes_checkpoints = true;
  kernel.flops = static_cast<double>(tensor::element_count(slices));
  kernel.bytes = static_cast<double>(tensor::byte_count(gather.results[0].tensor)) +
                 static_cast<double>(tensor::byte_count(gather.operands[1].tensor));
  kernel.run = [fold](const KernelCall& call) {
    fold->run({.operand = call.operands[0],
               .indices = call.operands[1],
               .init = call.operands[2],
               .result = call.results[0],
               .begin = call.begin,
               .end = call.end,
               .checkpoint = call.checkpoint});
  };
  return kernel;
}

PreparedKernel prepare_scatter(const OpView& local) {
  const WindowDims dims = scatter_dims(local);
  const size_t count = scatter_count(local);
  const ir::Type& operand = local.operands[0];
  const Dims& slices = local.operands[count + 1].dims();
  kernels::TileProgram body = compile_scalar_region(*local.function, local.regions[0]);
  PreparedKernel kernel;
  for (size_t i = 0; i < count; ++i) {
    const tensor::DType dtype = local.operands[i].dtype();
    const bool same =
        body.registers[i] == dtype && body.registers[count + i] == dtype && body.registers[body.outputs[i]] == dtype;
    if (!same)
      reject(local, "unsupported_dtype",
             "scatter whose body takes or gives another type than the inputs is not supported");
    kernel.bytes += 3.0 * static_cast<double>(tensor::byte_count(local.operands[count + 1 + i].tensor));
    kernel.in_place.emplace_back(static_cast<int>(i), static_cast<int>(i));
  }
  kernel.flops = static_cast<double>(tensor::element_count(slices)) * static_cast<double>(body.instructions.size());
  kernel.uses_offsets = true;
  // A shard has an offset in dims of which a window has one index; in others a window has all of the dim, or the dim is
  // not sharded.
  const bool replaces = count == 1 && body.outputs[0] == 1;
  const std::vector<int64_t> points = ir::ints_or(attributes_of(local), kPointDims, {});
  std::vector<int64_t> shifted;
  for (const int64_t d : dims.index_map) shifted.push_back(std::count(points.begin(), points.end(), d) != 0 ? d : -1);
  if (points.empty()) shifted.clear();  // nothing to shift, and no memory for it in each call
  const kernels::IndexTable table = index_table(dims, operand, local.operands[count], slices);
  auto scatter = std::make_shared<const kernels::Scatter>(
      table, picked(slices, dims.offset), picked(tensor::row_major_strides(slices), dims.offset),
      window_strides(dims, operand), tensor::element_count(operand.dims()), std::move(body));
  if (replaces && points.empty()) {
    kernel.small = one_window(table, dims, operand, slices, 1, {.written = 2, .skips = true, .indices = {}});
  }
  kernel.passes_checkpoints = true;
  kernel.work_count = scatter->work_count();
  if (scatter->barrier() > 0) kernel.barriers = {scatter->barrier()};
  kernel.workspace_bytes = scatter->workspace_bytes();
  kernel.run = [scatter, count, shifted](const KernelCall& call) {
    std::vector<int64_t> shifts;
    if (!shifted.empty() && call.result_offsets != nullptr) {
      for (const int64_t d : shifted) shifts.push_back(d >= 0 ? call.result_offsets[d] : 0);
    }
    scatter->run({.sources = call.operands,
                  .results = call.results,
                  .indices = call.operands[count],
                  .updates = call.operands + count + 1,
                  .shifts = shifts.empty() ? nullptr : shifts.data(),
                  .workspace = call.workspace,
                  .begin = call.begin,
                  .end = call.end,
                  .checkpoint = call.checkpoint});
  };
  return kernel;
}

ir::AttributeList localize_gather(const OpView& global, const OpView& local) {
  const WindowDims dims = gather_dims(global);
  ir::AttributeList list = attributes_of(global);
  std::vector<int64_t> sizes = ir::ints(list, "slice_sizes");
  const std::vector<int64_t> windows = window_dims(dims, global.operands[0].rank());
  for (size_t i = 0; i < windows.size(); ++i) {
    sizes[static_cast<size_t>(windows[i])] = local.results[0].dims()[static_cast<size_t>(dims.offset[i])];
  }
  ir::set(list, "slice_sizes", ir::int_array_attr(std::move(sizes)));
  return list;
}

ir::AttributeList localize_scatter(const OpView& global, const OpView& local) {
  ir::AttributeList list = attributes_of(global);
  if (global.operands[0].dims() == local.operands[0].dims()) return list;
  const WindowDims dims = scatter_dims(global);
  const Dims& slices = global.operands[scatter_count(global) + 1].dims();
  const Dims window = window_sizes(dims, global.operands[0].rank(), slices);
  std::vector<int64_t> points;
  for (const int64_t d : dims.index_map) {
    if (window[static_cast<size_t>(d)] == 1) points.push_back(d);
  }
  list.emplace_back(std::string(kPointDims), ir::int_array_attr(points));
  return list;
}

}  // namespace meshd::ops
