// What collectives compute. Every function here takes the operands of all members in group order and writes one
// member's results.
#include <algorithm>
#include <cstring>
#include <string>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/movement/movement.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/collective/collectives.h"
#include "service/ops/kernel_interface.h"

namespace meshd::ops {
namespace {

using tensor::DType;
using tensor::TensorType;

std::vector<TensorType> tensors(std::span<const ir::Type> types) {
  std::vector<TensorType> out;
  for (const ir::Type& type : types) out.push_back(type.tensor);
  return out;
}

size_t attribute_dim(const OpView& view, std::string_view name) {
  return static_cast<size_t>(ir::int_or(attributes_of(view), name, 0));
}

double bytes_of(std::span<const ir::Type> types) {
  double bytes = 0;
  for (const ir::Type& type : types) bytes += static_cast<double>(tensor::byte_count(type.tensor));
  return bytes;
}

constexpr int64_t kCopiedAtOnce = int64_t{4} << 20;  // bytes, between two checkpoints

void copy_bytes(const GroupCall& call, std::byte* to, const std::byte* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kCopiedAtOnce) {
    core::pass(call.checkpoint);
    std::memcpy(to + at, from + at, static_cast<size_t>(std::min(kCopiedAtOnce, bytes - at)));
  }
}

/// kernels::copy_block, some rows of the outermost dimension that has several at a time.
void copy_block(const GroupCall& call, std::byte* to, const tensor::Dims& to_dims, tensor::Dims to_start,
                const std::byte* from, const tensor::Dims& from_dims, tensor::Dims from_start, tensor::Dims extent,
                int64_t element) {
  size_t dim = 0;
  while (dim < extent.size() && extent[dim] == 1) ++dim;
  if (dim == extent.size())
    return kernels::copy_block(to, to_dims, to_start, from, from_dims, from_start, extent, element);
  const int64_t rows = extent[dim];
  const int64_t row_bytes = std::max<int64_t>(1, tensor::element_count(extent) / std::max<int64_t>(1, rows) * element);
  const int64_t at_once = std::max<int64_t>(1, kCopiedAtOnce / row_bytes);
  const int64_t to_first = to_start[dim];
  const int64_t from_first = from_start[dim];
  for (int64_t row = 0; row < rows; row += at_once) {
    core::pass(call.checkpoint);
    to_start[dim] = to_first + row;
    from_start[dim] = from_first + row;
    extent[dim] = std::min(at_once, rows - row);
    kernels::copy_block(to, to_dims, to_start, from, from_dims, from_start, extent, element);
  }
}

/// Combines runs of elements of several members into one run.
class Combiner {
 public:
  explicit Combiner(kernels::TileProgram program) : program_(std::move(program)), dtype_(program_.registers.at(0)) {
    const kernels::ScalarOp single = kernels::as_single_binary(program_);
    if (single != kernels::ScalarOp::kCopy) direct_ = kernels::find_scalar_kernel(single, dtype_, dtype_);
    lanes_ = direct_ != nullptr ? kDirectLanes : kernels::tile_lanes(program_);
  }

  /// out[i] = reducer(...reducer(reducer(in[0][i], in[1][i]), in[2][i])...). `out` may be one of the inputs only if it
  /// is the first.
  void run(std::byte* out, std::span<const std::byte* const> inputs, int64_t count,
           core::Checkpoint* checkpoint) const {
    const int64_t element = tensor::size_bytes(dtype_);
    kernels::TileScratch scratch(program_, direct_ != nullptr ? 0 : lanes_);
    for (int64_t start = 0; start < count; start += lanes_) {
      core::pass(checkpoint);
      const int64_t lanes = std::min(lanes_, count - start);
      const int64_t offset = start * element;
      const auto bytes = static_cast<size_t>(lanes * element);
      if (out + offset != inputs[0] + offset) std::memcpy(out + offset, inputs[0] + offset, bytes);
      for (size_t member = 1; member < inputs.size(); ++member) {
        if (direct_ != nullptr) {
          const std::byte* operands[] = {out + offset, inputs[member] + offset};
          direct_(operands, out + offset, lanes);
          continue;
        }
        std::memcpy(scratch.reg(0), out + offset, bytes);
        std::memcpy(scratch.reg(1), inputs[member] + offset, bytes);
        kernels::run_tile(program_, scratch, lanes);
        std::memcpy(out + offset, scratch.reg(program_.outputs[0]), bytes);
      }
    }
  }

 private:
  /// A run of this many elements stays in the first cache while all members pass over it.
  static constexpr int64_t kDirectLanes = 2048;

  kernels::TileProgram program_;
  DType dtype_;
  kernels::ScalarKernel direct_ = nullptr;
  int64_t lanes_ = 0;
};

}  // namespace

PreparedGroup prepare_all_gather(const OpView& local, int64_t group_size) {
  gathered_types(local, group_size);
  const size_t dim = attribute_dim(local, "all_gather_dim");
  PreparedGroup group;
  group.same_for_all = true;
  group.bytes = bytes_of(local.results);
  group.run = [dim, group_size, operands = tensors(local.operands),
               results = tensors(local.results)](const GroupCall& call) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const tensor::Dims& extent = operands[i].dims;
      const tensor::Dims from(extent.size(), 0);
      for (int64_t member = 0; member < group_size; ++member) {
        tensor::Dims to(extent.size(), 0);
        to[dim] = member * extent[dim];
        copy_block(call, call.results[i], results[i].dims, to, call.member_operands[static_cast<size_t>(member)][i],
                   extent, from, extent, tensor::size_bytes(operands[i].dtype));
      }
    }
  };
  return group;
}

PreparedGroup prepare_all_reduce(const OpView& local, int64_t group_size) {
  PreparedGroup group;
  group.same_for_all = true;
  group.bytes = bytes_of(local.operands) * static_cast<double>(group_size);
  group.run = [combiner = Combiner(compile_scalar_region(*local.function, local.regions[0])),
               operands = tensors(local.operands)](const GroupCall& call) {
    std::vector<const std::byte*> inputs(call.member_operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      for (size_t member = 0; member < inputs.size(); ++member) inputs[member] = call.member_operands[member][i];
      combiner.run(call.results[i], inputs, tensor::element_count(operands[i]), call.checkpoint);
    }
  };
  return group;
}

PreparedGroup prepare_all_to_all(const OpView& local, int64_t group_size) {
  exchanged_types(local, group_size);
  const size_t split = attribute_dim(local, "split_dimension");
  const size_t concat = attribute_dim(local, "concat_dimension");
  PreparedGroup group;
  group.bytes = bytes_of(local.operands);
  group.run = [split, concat, group_size, operands = tensors(local.operands),
               results = tensors(local.results)](const GroupCall& call) {
    for (size_t i = 0; i < operands.size(); ++i) {
      tensor::Dims extent = operands[i].dims;
      extent[split] /= group_size;
      tensor::Dims from(extent.size(), 0);
      from[split] = call.member * extent[split];
      for (int64_t member = 0; member < group_size; ++member) {
        tensor::Dims to(extent.size(), 0);
        to[concat] = member * extent[concat];
        copy_block(call, call.results[i], results[i].dims, to, call.member_operands[static_cast<size_t>(member)][i],
                   operands[i].dims, from, extent, tensor::size_bytes(operands[i].dtype));
      }
    }
  };
  return group;
}

PreparedGroup prepare_reduce_scatter(const OpView& local, int64_t group_size) {
  scattered_types(local, group_size);
  const size_t dim = attribute_dim(local, "scatter_dimension");
  PreparedGroup group;
  group.bytes = bytes_of(local.operands);
  group.run = [dim, group_size, combiner = Combiner(compile_scalar_region(*local.function, local.regions[0])),
               operand = local.operands[0].tensor](const GroupCall& call) {
    // The member's block is contiguous within each row of the operand before `dim`.
    int64_t row_count = 1;
    int64_t inner = 1;
    for (size_t i = 0; i < dim; ++i) row_count *= operand.dims[i];
    for (size_t i = dim + 1; i < operand.dims.size(); ++i) inner *= operand.dims[i];
    const int64_t element = tensor::size_bytes(operand.dtype);
    const int64_t row = operand.dims[dim] * inner;
    const int64_t run = row / group_size;
    std::vector<const std::byte*> inputs(call.member_operands.size());
    for (int64_t i = 0; i < row_count; ++i) {
      for (size_t member = 0; member < inputs.size(); ++member) {
        inputs[member] = call.member_operands[member][0] + (i * row + call.member * run) * element;
      }
      combiner.run(call.results[0] + i * run * element, inputs, run, call.checkpoint);
    }
  };
  return group;
}

namespace {

/// Results are the operands of the group's first member.
PreparedGroup copy_of_first(const OpView& local) {
  PreparedGroup group;
  group.bytes = bytes_of(local.operands);
  group.run = [operands = tensors(local.operands)](const GroupCall& call) {
    for (size_t i = 0; i < operands.size(); ++i) {
      copy_bytes(call, call.results[i], call.member_operands[0][i], tensor::byte_count(operands[i]));
    }
  };
  return group;
}

}  // namespace

PreparedGroup prepare_collective_permute(const OpView& local, int64_t /*group_size*/) { return copy_of_first(local); }

PreparedGroup prepare_collective_broadcast(const OpView& local, int64_t /*group_size*/) {
  PreparedGroup group = copy_of_first(local);
  group.same_for_all = true;
  return group;
}

}  // namespace meshd::ops
