// Per-shard lowering of dynamic_update_slice, whose start indices are global.
#include "service/ops/shards/shard_indices.h"
#include "service/ops/shards/shard_writers.h"

namespace meshd::ops {
namespace {

using tensor::Dims;
using tensor::DType;

/// Rows of `update` along `dim` as they fall on a shard of `rows` rows when its first one falls on row `first` (a
/// scalar of i64, negative or behind the end, too); anything on rows that it does not reach.
ir::ValueId fallen(Writer& writer, ir::ValueId update, size_t dim, int64_t rows, ir::ValueId first) {
  const ir::Type type = writer.type(update);
  const size_t rank = type.dims().size();
  std::vector<int64_t> padding(rank, 0);
  padding[dim] = rows;
  Dims dims = type.dims();
  dims[dim] += 2 * rows;
  const ir::ValueId padded = writer.add("stablehlo.pad", {update, writer.zero({type.dtype(), {}})},
                                        {{"edge_padding_high", ir::int_array_attr(padding)},
                                         {"edge_padding_low", ir::int_array_attr(padding)},
                                         {"interior_padding", ir::int_array_attr(std::vector<int64_t>(rank, 0))}},
                                        ir::Type::of({type.dtype(), dims}));
  const ir::Type scalar = writer.type(first);
  std::vector<ir::ValueId> operands{padded};
  for (size_t d = 0; d < rank; ++d) {
    const auto low = writer.splat(scalar, d == dim ? static_cast<double>(rows) : 0);
    operands.push_back(d == dim ? writer.add("stablehlo.subtract", {low, first}) : low);
  }
  dims[dim] = rows;
  return writer.add("stablehlo.dynamic_slice", std::move(operands), {{"slice_sizes", ir::int_array_attr(dims)}},
                    ir::Type::of({type.dtype(), dims}));
}

/// Which rows of `dim` are in [first, first + count), over all elements of `dims`.
ir::ValueId within(Writer& writer, const Dims& dims, size_t dim, ir::ValueId first, int64_t count) {
  const ir::ValueId rows = writer.iota({DType::kInt64, dims}, static_cast<int64_t>(dim));
  const ir::ValueId from_first = counted_from(writer, rows, first);
  return writer.add("stablehlo.and",
                    {compared(writer, from_first, 0, "GE"), compared(writer, from_first, count, "LT")});
}

}  // namespace

std::optional<std::vector<ir::ValueId>> dynamic_update_slice_on_shard(const OpView& global, const OpView& local,
                                                                      const std::vector<ir::ValueId>& operands,
                                                                      const ShardStarts& starts, Writer& writer) {
  const Dims& dims = global.operands[0].dims();
  const Dims& update_dims = global.operands[1].dims();
  const Dims& held = local.operands[0].dims();
  const ir::Type scalar = ir::Type::of({DType::kInt64, {}});
  // In sharded dims the update is padded to the shard's size, with a mask of its rows; in others it keeps its start.
  ir::ValueId update = operands[1];
  std::vector<std::pair<size_t, ir::ValueId>> sharded;
  std::vector<ir::ValueId> places;
  Dims window = local.operands[1].dims();
  bool is_all = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    places.push_back(writer.splat(scalar, 0));
    if (dims[d] == update_dims[d]) continue;
    const ir::ValueId place = clamped(writer, operands[2 + d], dims[d] - update_dims[d]);
    const ir::ValueId start = starts.of_operand(0, d);
    if (start == ir::kNoValue) {
      places.back() = place;
      is_all = false;
      continue;
    }
    const ir::ValueId first = writer.add("stablehlo.subtract", {place, start});
    update = fallen(writer, update, d, held[d], first);
    window[d] = held[d];
    sharded.emplace_back(d, first);
  }
  ir::ValueId is_here = ir::kNoValue;
  for (const auto& [d, first] : sharded) {
    const ir::ValueId in_dim = within(writer, window, d, first, update_dims[d]);
    is_here = is_here == ir::kNoValue ? in_dim : writer.add("stablehlo.and", {is_here, in_dim});
  }
  if (is_here != ir::kNoValue) {
    ir::ValueId there = operands[0];
    if (!is_all) {
      std::vector<ir::ValueId> slice{there};
      slice.insert(slice.end(), places.begin(), places.end());
      there = writer.add("stablehlo.dynamic_slice", std::move(slice), {{"slice_sizes", ir::int_array_attr(window)}},
                         writer.type(update));
    }
    update = writer.add("stablehlo.select", {is_here, update, there}, {}, writer.type(update));
    if (is_all) return std::vector{update};
  }
  std::vector<ir::ValueId> all{operands[0], update};
  all.insert(all.end(), places.begin(), places.end());
  return std::vector{writer.add("stablehlo.dynamic_update_slice", std::move(all), {}, local.results[0])};
}

}  // namespace meshd::ops
