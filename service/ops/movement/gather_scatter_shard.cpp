// Per-shard lowering of gather and scatter whose indexed dims are sharded.
#include <algorithm>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/checks.h"
#include "service/ops/movement/gather_scatter.h"
#include "service/ops/shards/shard_indices.h"
#include "service/ops/shards/shard_writers.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using tensor::DType;

/// Numbers of one component of the index tuples, of 64 bits: the vector dim has one element, or is not there.
ir::ValueId component(Writer& writer, ir::ValueId indices, int64_t vector_dim, size_t number) {
  const ir::Type type = writer.type(indices);
  if (vector_dim >= type.rank()) return indices;
  const auto at = static_cast<size_t>(vector_dim);
  if (type.dims()[at] == 1) return indices;
  std::vector<int64_t> start(type.dims().size(), 0);
  std::vector<int64_t> limit = type.dims();
  start[at] = static_cast<int64_t>(number);
  limit[at] = start[at] + 1;
  return writer.slice(indices, start, limit);
}

}  // namespace

std::optional<Combine> combine_gather(const OpView& /*view*/) {
  return Combine{{kernels::ScalarOp::kOr}, {-1, -1}, {-1}, true};
}

std::optional<Combine> combine_scatter(const OpView& view) {
  const size_t count = scatter_count(view);
  Combine combine;
  combine.ops = combining_ops(view, count);
  if (combine.ops.empty()) return std::nullopt;
  for (size_t i = 0; i < view.operands.size(); ++i)
    combine.operand_results.push_back(i == count ? -1 : static_cast<int>(i < count ? i : i - count - 1));
  for (size_t i = 0; i < count; ++i) combine.starts.push_back(static_cast<int>(i));
  return combine;
}

std::optional<std::vector<ir::ValueId>> gather_on_shard(const OpView& global, const OpView& local,
                                                        const std::vector<ir::ValueId>& operands,
                                                        const ShardStarts& starts, Writer& writer) {
  const WindowDims dims = gather_dims(global);
  const Dims& operand_dims = global.operands[0].dims();
  if (std::count(operand_dims.begin(), operand_dims.end(), 0) != 0) return std::nullopt;
  const std::vector<int64_t> window = ir::ints(attributes_of(global), "slice_sizes");
  const Dims& held = local.operands[0].dims();
  std::vector<ir::ValueId> components;
  ir::ValueId is_here = ir::kNoValue;
  const auto also = [&](ir::ValueId condition) {
    is_here = is_here == ir::kNoValue ? condition : writer.add("stablehlo.and", {is_here, condition});
  };
  for (size_t c = 0; c < dims.index_map.size(); ++c) {
    const auto d = static_cast<size_t>(dims.index_map[c]);
    ir::ValueId at =
        clamped(writer, component(writer, operands[1], dims.index_vector_dim, c), operand_dims[d] - window[d]);
    const ir::ValueId start = starts.of_operand(0, d);
    if (start != ir::kNoValue && window[d] == 1) {
      at = counted_from(writer, at, start);
      also(compared(writer, at, 0, "GE"));
      also(compared(writer, at, held[d], "LT"));
    }
    components.push_back(at);
  }
  const Dims tuples = [&] {
    Dims out = local.operands[1].dims();
    if (dims.index_vector_dim < static_cast<int64_t>(out.size())) out.erase(out.begin() + dims.index_vector_dim);
    return out;
  }();
  if (is_here != ir::kNoValue) is_here = writer.reshape(is_here, tuples);
  // A dim without an index is read in its first row.
  for (size_t d = 0; d < operand_dims.size(); ++d) {
    const bool has_index = std::count(dims.index_map.begin(), dims.index_map.end(), static_cast<int64_t>(d)) != 0;
    const bool is_batching =
        std::count(dims.operand_batching.begin(), dims.operand_batching.end(), static_cast<int64_t>(d)) != 0;
    if (has_index || is_batching || window[d] != 1 || operand_dims[d] == 1) continue;
    const ir::ValueId start = starts.of_operand(0, d);
    if (start != ir::kNoValue) also(writer.broadcast(compared(writer, start, 0, "EQ"), tuples, {}));
  }
  const ir::ValueId indices = components.empty() ? operands[1] : writer.concatenate(components, dims.index_vector_dim);
  const ir::Type& type = local.results[0];
  const ir::ValueId found =
      writer.add("stablehlo.gather", {operands[0], indices}, localize_gather(global, local), type);
  if (is_here == ir::kNoValue) return std::vector{found};
  const ir::ValueId mask = writer.broadcast(is_here, type.dims(), batch_dims(dims, type.rank()));
  return std::vector{writer.add("stablehlo.select", {mask, found, writer.zero(type.tensor)}, {}, type)};
}

std::optional<std::vector<ir::ValueId>> scatter_on_shard(const OpView& global, const OpView& local,
                                                         const std::vector<ir::ValueId>& operands,
                                                         const ShardStarts& starts, Writer& writer) {
  const WindowDims dims = scatter_dims(global);
  const size_t count = scatter_count(global);
  const std::vector<int64_t> windows = window_dims(dims, global.operands[0].rank());
  std::vector<ir::ValueId> components;
  for (size_t c = 0; c < dims.index_map.size(); ++c) {
    const int64_t d = dims.index_map[c];
    ir::ValueId at = widened(writer, component(writer, operands[count], dims.index_vector_dim, c));
    // Windows have all of a dim that they have more than one index of.
    const ir::ValueId start = starts.of_operand(0, static_cast<size_t>(d));
    const bool is_point = std::count(windows.begin(), windows.end(), d) == 0;
    if (start != ir::kNoValue && is_point) at = counted_from(writer, at, start);
    components.push_back(at);
  }
  std::vector<ir::ValueId> inputs = operands;
  if (!components.empty()) inputs[count] = writer.concatenate(components, dims.index_vector_dim);
  const std::vector<ir::Type> types(local.results.begin(), local.results.end());
  return writer.add("stablehlo.scatter", std::move(inputs), attributes_of(global), types,
                    std::vector<ir::Region>(global.regions.begin(), global.regions.end()));
}

}  // namespace meshd::ops
