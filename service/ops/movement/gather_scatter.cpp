// Rows of gather and scatter, their dimension numbers and factor rules.
#include "service/ops/movement/gather_scatter.h"

#include <algorithm>

#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/movement/movement_batch.h"
#include "service/ops/quantized.h"
#include "service/ops/rule_views.h"
#include "service/ops/shards/shard_writers.h"

namespace meshd::ops {
namespace {

using sharding::FactorKind;
using sharding::FactorRule;
using sharding::FactorRuleBuilder;
using tensor::Dims;

/// What the factors of both rules are made from; add() gets -1 where a tensor does not have the factor.
template <typename Add>
void add_factors(const WindowDims& dims, const Dims& operand, const Dims& indices, const Dims& slices, bool is_gather,
                 Add&& add) {
  const std::vector<int64_t> windows = window_dims(dims, static_cast<int64_t>(operand.size()));
  const std::vector<int64_t> tuples = tuple_dims(dims, static_cast<int64_t>(indices.size()));
  size_t next_window = 0;
  size_t next_tuple = 0;
  for (size_t d = 0; d < slices.size(); ++d) {
    const int slice = static_cast<int>(d);
    if (!contains(dims.offset, slice)) {
      const int64_t tuple = tuples[next_tuple++];
      const auto batching = std::find(dims.indices_batching.begin(), dims.indices_batching.end(), tuple);
      const bool is_batching = batching != dims.indices_batching.end();
      const int in =
          is_batching
              ? static_cast<int>(dims.operand_batching[static_cast<size_t>(batching - dims.indices_batching.begin())])
              : -1;
      add(in, static_cast<int>(tuple), slice, slices[d], FactorKind::kPassThrough, false);
      continue;
    }
    const int in = static_cast<int>(windows[next_window++]);
    const int64_t size = operand[static_cast<size_t>(in)];
    if (size == slices[d]) {
      add(in, -1, slice, size, FactorKind::kPassThrough, false);
    } else if (is_gather && slices[d] != 1) {
      add(in, -1, slice, size, FactorKind::kNeedReplication, true);
    } else {
      // A window of one index reads one shard only, so that partial results add up; longer ones may cross shards.
      add(in, -1, -1, size, is_gather ? FactorKind::kReduction : FactorKind::kNeedReplication, false);
      add(-1, -1, slice, slices[d], FactorKind::kNeedReplication, false);
    }
  }
  for (const int64_t d : dims.collapsed) {
    add(static_cast<int>(d), -1, -1, operand[static_cast<size_t>(d)],
        is_gather ? FactorKind::kReduction : FactorKind::kPassThrough, false);
  }
  if (dims.index_vector_dim < static_cast<int64_t>(indices.size())) {
    const auto at = static_cast<size_t>(dims.index_vector_dim);
    add(-1, static_cast<int>(at), -1, indices[at], FactorKind::kNeedReplication, false);
  }
}

/// An inserted dim without an index: all windows are in its first row, which only the first shard has.
bool scatter_keeps_unsharded(const OpView& view, const FactorRule& rule, size_t factor) {
  const WindowDims dims = scatter_dims(view);
  for (const int64_t d : dims.collapsed) {
    if (has_factor(rule, static_cast<size_t>(d), factor)) return !contains(dims.index_map, d);
  }
  return false;
}

}  // namespace

ir::AttributeList gather_attributes(const WindowDims& dims, const std::vector<int64_t>& slice_sizes) {
  return {{"dimension_numbers",
           ir::Attribute{ir::DictAttr{"stablehlo.gather",
                                      {{"offset_dims", ir::int_array_attr(dims.offset)},
                                       {"collapsed_slice_dims", ir::int_array_attr(dims.collapsed)},
                                       {"operand_batching_dims", ir::int_array_attr(dims.operand_batching)},
                                       {"start_indices_batching_dims", ir::int_array_attr(dims.indices_batching)},
                                       {"start_index_map", ir::int_array_attr(dims.index_map)},
                                       {"index_vector_dim", ir::integer_attr(dims.index_vector_dim)}}}}},
          {"slice_sizes", ir::int_array_attr(slice_sizes)}};
}

ir::AttributeList scatter_attributes(const WindowDims& dims) {
  return {{"scatter_dimension_numbers",
           ir::Attribute{ir::DictAttr{"stablehlo.scatter",
                                      {{"update_window_dims", ir::int_array_attr(dims.offset)},
                                       {"inserted_window_dims", ir::int_array_attr(dims.collapsed)},
                                       {"input_batching_dims", ir::int_array_attr(dims.operand_batching)},
                                       {"scatter_indices_batching_dims", ir::int_array_attr(dims.indices_batching)},
                                       {"scatter_dims_to_operand_dims", ir::int_array_attr(dims.index_map)},
                                       {"index_vector_dim", ir::integer_attr(dims.index_vector_dim)}}}}}};
}

WindowDims gather_dims(const OpView& view) {
  const ir::AttributeList& numbers = ir::dict(attributes_of(view), "dimension_numbers").entries;
  return {ir::ints_or(numbers, "offset_dims", {}),           ir::ints_or(numbers, "collapsed_slice_dims", {}),
          ir::ints_or(numbers, "operand_batching_dims", {}), ir::ints_or(numbers, "start_indices_batching_dims", {}),
          ir::ints_or(numbers, "start_index_map", {}),       ir::int_or(numbers, "index_vector_dim", 0)};
}

WindowDims scatter_dims(const OpView& view) {
  const ir::AttributeList& numbers = ir::dict(attributes_of(view), "scatter_dimension_numbers").entries;
  return {ir::ints_or(numbers, "update_window_dims", {}),
          ir::ints_or(numbers, "inserted_window_dims", {}),
          ir::ints_or(numbers, "input_batching_dims", {}),
          ir::ints_or(numbers, "scatter_indices_batching_dims", {}),
          ir::ints_or(numbers, "scatter_dims_to_operand_dims", {}),
          ir::int_or(numbers, "index_vector_dim", 0)};
}

std::vector<int64_t> window_dims(const WindowDims& dims, int64_t operand_rank) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < operand_rank; ++d) {
    if (!contains(dims.collapsed, d) && !contains(dims.operand_batching, d)) out.push_back(d);
  }
  return out;
}

std::vector<int64_t> batch_dims(const WindowDims& dims, int64_t slices_rank) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < slices_rank; ++d) {
    if (!contains(dims.offset, d)) out.push_back(d);
  }
  return out;
}

std::vector<int64_t> tuple_dims(const WindowDims& dims, int64_t indices_rank) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < indices_rank; ++d) {
    if (d != dims.index_vector_dim) out.push_back(d);
  }
  return out;
}

size_t scatter_count(const OpView& view) { return (view.operands.size() - 1) / 2; }

bool only_replaces(const OpView& view) {
  if (view.regions.size() != 1 || view.regions[0].ops.empty()) return false;
  const ir::Region& body = view.regions[0];
  const std::vector<ir::ValueId>& returned = body.ops.back().operands;
  const size_t count = scatter_count(view);
  return returned.size() == count && body.arguments.size() == 2 * count &&
         std::equal(returned.begin(), returned.end(), body.arguments.begin() + static_cast<std::ptrdiff_t>(count));
}

FactorRule gather_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  add_factors(gather_dims(view), view.operands[0].dims(), view.operands[1].dims(), view.results[0].dims(), true,
              [&](int operand, int indices, int slices, int64_t size, FactorKind kind, bool blocked) {
                builder.factor({operand, indices}, {slices}, size, kind, blocked);
              });
  return builder.build();
}

FactorRule scatter_rule(const OpView& view) {
  FactorRuleBuilder builder = rule_builder(view);
  const size_t count = scatter_count(view);
  const FactorKind of_updates = only_replaces(view) ? FactorKind::kNeedReplication : FactorKind::kReduction;
  add_factors(scatter_dims(view), view.operands[0].dims(), view.operands[count].dims(), view.operands[count + 1].dims(),
              false, [&](int operand, int indices, int slices, int64_t size, FactorKind kind, bool blocked) {
                std::vector<int> operands(count, operand);
                operands.push_back(indices);
                operands.insert(operands.end(), count, slices);
                const bool updates_only = operand < 0 && indices >= 0 && slices >= 0;
                builder.factor(operands, std::vector<int>(count, operand), size, updates_only ? of_updates : kind,
                               blocked);
              });
  return builder.build();
}

namespace {

int64_t place_in(const std::vector<int64_t>& list, int64_t number) {
  const auto found = std::find(list.begin(), list.end(), number);
  return found == list.end() ? -1 : found - list.begin();
}

/// The numbers of `list` that are in `kept`, as their places there.
std::vector<int64_t> renumbered(const std::vector<int64_t>& list, const std::vector<int64_t>& kept) {
  std::vector<int64_t> out;
  for (const int64_t number : list) {
    if (const int64_t place = place_in(kept, number); place >= 0) out.push_back(place);
  }
  return out;
}

// Example: 4096x1000 gathered at (row, column) pairs, of a broadcast of one number a row: the smaller gather reads the
// first number of each pair. With rows as a batching dimension there is no smaller gather: row i's number is result i.
std::optional<GatherOfBroadcast> gather_of_broadcast(const OpView& view, const std::vector<int64_t>& kept) {
  const WindowDims dims = gather_dims(view);
  const Dims& operand = view.operands[0].dims();
  const std::vector<int64_t> sizes = ir::ints(attributes_of(view), "slice_sizes");
  const std::vector<int64_t> windows = window_dims(dims, view.operands[0].rank());
  const std::vector<int64_t> batch = batch_dims(dims, view.results[0].rank());
  const std::vector<int64_t> tuples = tuple_dims(dims, view.operands[1].rank());
  GatherOfBroadcast out;
  bool reads_tuples = false;
  std::vector<int64_t> copied;   // for each kept dimension, that of the result with the same index
  std::vector<int64_t> offsets;  // dimensions of the result that are kept ones of windows
  std::vector<int64_t> kept_sizes;
  for (const int64_t d : kept) {
    const auto place = static_cast<size_t>(d);
    kept_sizes.push_back(sizes[place]);
    const int64_t window = place_in(windows, d);
    const int64_t batching = place_in(dims.operand_batching, d);
    if (window >= 0) offsets.push_back(dims.offset[static_cast<size_t>(window)]);
    // A window of all indices begins at the first one.
    if (window >= 0 && sizes[place] == operand[place]) {
      copied.push_back(offsets.back());
    } else if (batching >= 0) {
      const int64_t tuple = place_in(tuples, dims.indices_batching[static_cast<size_t>(batching)]);
      copied.push_back(batch[static_cast<size_t>(tuple)]);
    } else if (place_in(dims.index_map, d) >= 0) {
      reads_tuples = true;
    } else {
      return std::nullopt;
    }
  }
  if (!reads_tuples) {
    out.dims = std::move(copied);
    return out;
  }
  WindowDims smaller;
  smaller.index_vector_dim = dims.index_vector_dim;
  for (size_t i = 0; i < dims.index_map.size(); ++i) {
    if (place_in(kept, dims.index_map[i]) < 0) continue;
    if (out.numbers == 0) out.first_number = static_cast<int64_t>(i);
    if (static_cast<int64_t>(i) != out.first_number + out.numbers) return std::nullopt;  // not side by side
    ++out.numbers;
  }
  smaller.index_map = renumbered(dims.index_map, kept);
  smaller.collapsed = renumbered(dims.collapsed, kept);
  smaller.operand_batching = renumbered(dims.operand_batching, kept);
  for (size_t i = 0; i < dims.operand_batching.size(); ++i) {
    if (place_in(kept, dims.operand_batching[i]) >= 0) smaller.indices_batching.push_back(dims.indices_batching[i]);
  }
  out.dims = batch;
  out.dims.insert(out.dims.end(), offsets.begin(), offsets.end());
  std::sort(out.dims.begin(), out.dims.end());
  smaller.offset = renumbered(offsets, out.dims);
  out.attributes = gather_attributes(smaller, kept_sizes);
  out.tuple_dim = dims.index_vector_dim;
  return out;
}

}  // namespace

std::vector<OpDef> gather_scatter_rows() {
  return {
      {.name = "stablehlo.gather",
       .summary = "windows of the operand at computed start indices, which are clamped so that they lie inside",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<3x1xi32>) -> tensor<3x4xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
)",
       .signature = {.operand_min = 2,
                     .operand_max = 2,
                     .region_count = 0,
                     .attributes = {{"dimension_numbers", true, "how operand, indices and result go together"},
                                    {"slice_sizes", true, "sizes of a window"},
                                    {"indices_are_sorted", false, "a hint that nothing depends on"}}},
       .infer = infer_gather,
       .bounded = BoundedForm::kGather,
       .quantized = kQuantizedMoved,
       .rule = gather_rule,
       .body = LocalKernel{prepare_gather},
       .combine = combine_gather,
       .on_shard = gather_on_shard,
       .localize = localize_gather,
       .derivative = {vjp_gather},
       .batch = batch_gather,
       .fuse = {.reduced = prepare_gathered_reduction, .of_broadcast = gather_of_broadcast}},
      {.name = "stablehlo.scatter",
       .summary = "windows of updates combined into the inputs at computed start indices; windows that do not lie "
                  "inside are skipped",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<3x1xi32>, %arg2: tensor<3x4xf32>) -> tensor<8x4xf32> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
)",
       .signature = {.operand_min = 3,
                     .operand_max = -1,
                     .region_count = 1,
                     .attributes = {{"scatter_dimension_numbers", true, "how inputs, indices and updates go together"},
                                    {"indices_are_sorted", false, "a hint that nothing depends on"},
                                    {"unique_indices", false, "a hint that nothing depends on"}}},
       .infer = infer_scatter,
       .bounded = BoundedForm::kScatter,
       .quantized = kQuantizedReduced,
       .rule = scatter_rule,
       .body = LocalKernel{prepare_scatter},
       .combine = combine_scatter,
       .on_shard = scatter_on_shard,
       .localize = localize_scatter,
       .region_arguments = RegionArguments::kScatter,
       .derivative = {vjp_scatter},
       .batch = batch_scatter,
       .keeps_unsharded = scatter_keeps_unsharded},
  };
}

}  // namespace meshd::ops
