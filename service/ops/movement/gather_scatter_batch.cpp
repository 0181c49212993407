// Batching of gathers and scatters, and of what becomes one: slices whose starts differ from entry to entry.
#include <numeric>

#include "service/ops/checks.h"
#include "service/ops/movement/gather_scatter.h"
#include "service/ops/movement/movement_batch.h"
#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {
namespace {

using DimList = std::vector<int64_t>;

/// The batch dimension of the operand is a window dimension of full size, or goes with that of the indices.
WindowDims batched_dims(WindowDims dims, bool of_operand, bool of_indices) {
  if (of_operand) {
    dims.collapsed = shifted(std::move(dims.collapsed));
    dims.operand_batching = shifted(std::move(dims.operand_batching));
    dims.index_map = shifted(std::move(dims.index_map));
  }
  dims.offset = shifted(std::move(dims.offset));
  if (of_indices) {
    dims.indices_batching = shifted(std::move(dims.indices_batching));
    ++dims.index_vector_dim;
  }
  if (of_operand && of_indices) {
    dims.operand_batching = with_front(0, std::move(dims.operand_batching));
    dims.indices_batching = with_front(0, std::move(dims.indices_batching));
  } else if (of_operand) {
    dims.offset = with_front(0, std::move(dims.offset));
  }
  return dims;
}

/// Dimensions of slices with one start for each entry of the batch: start i is of dimension i.
WindowDims slice_dims(size_t rank, bool of_operand) {
  DimList all(rank);
  std::iota(all.begin(), all.end(), 0);
  return batched_dims({.offset = all,
                       .collapsed = {},
                       .operand_batching = {},
                       .indices_batching = {},
                       .index_map = all,
                       .index_vector_dim = 0},
                      of_operand, true);
}

/// The starts of a dynamic slice, from operand `first` on, as a row for each entry of the batch.
Term start_rows(const Batching& b, size_t first) {
  std::vector<ir::ValueId> columns;
  for (size_t i = first; i < b.operands.size(); ++i) columns.push_back(b.writer.reshape(b.batched(i), {b.size, 1}));
  return {&b.writer, b.writer.concatenate(std::move(columns), 1)};
}

std::vector<ir::ValueId> with_zero_start(const Batching& b, std::vector<ir::ValueId> operands, size_t first) {
  operands.push_back(b.writer.splat(b.view.operands[first], 0));
  operands.insert(operands.end(), b.operands.begin() + static_cast<int64_t>(first), b.operands.end());
  return operands;
}

}  // namespace

Batched batch_dynamic_slice(const Batching& b) {
  const DimList sizes = ir::ints(attributes_of(b.view), "slice_sizes");
  if (b.operands.size() == 1) return b.rewritten({b.batched(0)}, b.op.attributes);
  if (!b.any_batched(1)) {
    return b.rewritten(with_zero_start(b, {b.batched(0)}, 1),
                       {{"slice_sizes", ir::int_array_attr(with_front(b.size, sizes))}});
  }
  const bool of_operand = b.is_batched[0];
  const WindowDims dims = slice_dims(sizes.size(), of_operand);
  return std::vector<ir::ValueId>{b.writer.add("stablehlo.gather", {b.operands[0], start_rows(b, 1).id},
                                               gather_attributes(dims, of_operand ? with_front(1, sizes) : sizes))};
}

Batched batch_dynamic_update_slice(const Batching& b) {
  if (b.operands.size() == 2) return b.rewritten({b.batched(0), b.batched(1)}, b.op.attributes);
  if (!b.any_batched(2)) return b.rewritten(with_zero_start(b, {b.batched(0), b.batched(1)}, 2), b.op.attributes);
  const Term starts = start_rows(b, 2);
  DimList most;
  for (size_t d = 0; d < b.view.operands[0].dims().size(); ++d)
    most.push_back(most_start(b.view.operands[0].dims()[d], b.view.operands[1].dims()[d], starts.dtype()));
  const auto count = static_cast<int64_t>(most.size());
  const Term limits = converted({&b.writer, b.writer.constant(ir::dense_integers_attr(most, {count}))}, starts.dtype());
  const ir::ValueId clamped = b.writer.add(
      "stablehlo.clamp", {starts.number(0).id, starts.id, b.writer.broadcast(limits.id, starts.dims(), {1})});
  const ir::Type scalar = with_dims(b.view.operands[0], {});
  std::vector<ir::Region> regions;
  regions.push_back(b.writer.region(
      {scalar, scalar}, [&](const auto& arguments) { b.writer.create("stablehlo.return", {arguments[1]}, {}); }));
  return b.writer.add("stablehlo.scatter", {b.batched(0), clamped, b.batched(1)},
                      scatter_attributes(slice_dims(most.size(), true)), {b.batch_of(b.view.results[0])},
                      std::move(regions));
}

Batched batch_gather(const Batching& b) {
  const DimList sizes = ir::ints(attributes_of(b.view), "slice_sizes");
  const bool of_operand = b.is_batched[0];
  const bool of_indices = b.is_batched[1];
  const WindowDims dims = batched_dims(gather_dims(b.view), of_operand, of_indices);
  ir::AttributeList attributes =
      gather_attributes(dims, !of_operand ? sizes : with_front(of_indices ? 1 : b.size, sizes));
  if (const ir::Attribute* promised = ir::find(attributes_of(b.view), kPromisedInside))
    attributes.push_back({std::string(kPromisedInside), *promised});
  return std::vector<ir::ValueId>{b.writer.add("stablehlo.gather", b.operands, std::move(attributes))};
}

Batched batch_scatter(const Batching& b) {
  const size_t count = scatter_count(b.view);
  const bool of_indices = b.is_batched[count];
  std::vector<ir::ValueId> operands = b.all_batched();
  if (!of_indices) operands[count] = b.operands[count];
  ir::AttributeList attributes = b.attributes_without({"scatter_dimension_numbers", "indices_are_sorted"});
  for (ir::NamedAttribute& entry : scatter_attributes(batched_dims(scatter_dims(b.view), true, of_indices)))
    attributes.push_back(std::move(entry));
  return b.rewritten(std::move(operands), std::move(attributes));
}

}  // namespace meshd::ops
