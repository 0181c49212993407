// Result types of collectives, with the specification's labels.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/ops/checks.h"
#include "service/ops/collective/collective_groups.h"
#include "service/ops/collective/collectives.h"

namespace meshd::ops {
namespace {

/// The dimension an attribute names, checked against the rank of operand `operand`.
size_t dimension_of(const OpView& view, const std::string& label, std::string_view attribute, size_t operand) {
  const int64_t dim = ir::int_or(attributes_of(view), attribute, -1);
  const int64_t rank = view.operands[operand].rank();
  if (dim < 0 || dim >= rank) {
    reject(view, fmt::format("{}: {} must be in [0, {}), got {}", label, attribute, rank, dim));
  }
  return static_cast<size_t>(dim);
}

void expect_tensors(const OpView& view, const std::string& op) {
  if (view.operands.empty()) reject(view, op + " I1: needs at least one operand");
  for (size_t i = 0; i < view.operands.size(); ++i) expect_tensor(view, op, i);
}

std::vector<ir::Type> as_stored(std::vector<ir::Type> types) {
  for (ir::Type& type : types) type = ir::storage_type(std::move(type));
  return types;
}

/// The region must take two scalars and return one, all of one element type, which is the operands'. Quantised ones are
/// the integers that are stored here, as the operands are: check_quantized() has compared their parameters.
void expect_reducer(const OpView& view, const std::string& op, std::string_view label) {
  const std::vector<ir::Type> arguments = as_stored(argument_types(view, view.regions[0]));
  const std::vector<ir::Type> returned = as_stored(returned_types(view, view.regions[0]));
  for (const ir::Type& operand : view.operands) {
    const ir::Type scalar = ir::scalar_of(operand);
    if (arguments == std::vector<ir::Type>{scalar, scalar} && returned == std::vector<ir::Type>{scalar}) continue;
    reject(view, op + " " + std::string(label) + ": computation must be " + types_text({scalar, scalar}) + " -> " +
                     types_text({scalar}) + ", got " + types_text(arguments) + " -> " + types_text(returned));
  }
}

/// Members of the group that `dim` is shared among, from the declared result where the attribute means "all".
int64_t divided(const OpView& view, const std::string& op, std::string_view label, int64_t size, int64_t parts) {
  if (size == tensor::kDynamicDim) return size;
  if (parts <= 0 || size % parts != 0) {
    reject(view,
           fmt::format("{} {}: dimension of size {} cannot be split into {} equal parts", op, label, size, parts));
  }
  return size / parts;
}

}  // namespace

std::vector<ir::Type> gathered_types(const OpView& view, int64_t group_size) {
  std::vector<ir::Type> types(view.operands.begin(), view.operands.end());
  for (size_t i = 0; i < types.size(); ++i) {
    int64_t& size = types[i].tensor.dims[dimension_of(view, "all_gather C1", "all_gather_dim", i)];
    if (size != tensor::kDynamicDim)
      size = group_size == tensor::kDynamicDim ? tensor::kDynamicDim : core::checked_mul(size, group_size);
  }
  return agree(view, "all_gather C6", std::move(types));
}

std::vector<ir::Type> infer_all_gather(const OpView& view) {
  expect_tensors(view, "all_gather");
  const int64_t group_size = written_group_size(view, "all_gather");
  // Empty groups, and those of replica ids, have a size that only the mesh determines: the text declares the result.
  const bool known = group_size > 0 && (group_size > 1 || channel_of(view) <= 0);
  return gathered_types(view, known ? group_size : tensor::kDynamicDim);
}

std::vector<ir::Type> infer_all_reduce(const OpView& view) {
  expect_tensors(view, "all_reduce");
  replica_groups_of(view, "all_reduce");
  // checks: all_reduce C5: computation takes two scalars of the operands' element type and returns one
  expect_reducer(view, "all_reduce", "C5");
  return agree(view, "all_reduce C6", {view.operands.begin(), view.operands.end()});
}

std::vector<ir::Type> exchanged_types(const OpView& view, int64_t group_size) {
  // checks: all_to_all C2: split_count divides dimension split_dimension
  std::vector<ir::Type> types(view.operands.begin(), view.operands.end());
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t split = dimension_of(view, "all_to_all C1", "split_dimension", i);
    const size_t concat = dimension_of(view, "all_to_all C3", "concat_dimension", i);
    tensor::Dims& dims = types[i].tensor.dims;
    dims[split] = divided(view, "all_to_all", "C2", dims[split], group_size);
    if (dims[concat] != tensor::kDynamicDim) dims[concat] = core::checked_mul(dims[concat], group_size);
  }
  return agree(view, "all_to_all C9", std::move(types));
}

std::vector<ir::Type> infer_all_to_all(const OpView& view) {
  expect_tensors(view, "all_to_all");
  const int64_t count = ir::int_or(attributes_of(view), "split_count", 0);
  if (count <= 0) reject(view, fmt::format("all_to_all C4: split_count must be positive, got {}", count));
  const int64_t group_size = written_group_size(view, "all_to_all");
  if (group_size > 0 && group_size != count) {
    reject(view,
           fmt::format("all_to_all C8: split_count must be the size of the groups ({}), got {}", group_size, count));
  }
  return exchanged_types(view, count);
}

std::vector<ir::Type> scattered_types(const OpView& view, int64_t group_size) {
  ir::Type type = view.operands[0];
  int64_t& size = type.tensor.dims[dimension_of(view, "reduce_scatter C2", "scatter_dimension", 0)];
  size =
      group_size == tensor::kDynamicDim ? tensor::kDynamicDim : divided(view, "reduce_scatter", "C1", size, group_size);
  return agree(view, "reduce_scatter C8", {std::move(type)});
}

std::vector<ir::Type> infer_reduce_scatter(const OpView& view) {
  expect_operand_count(view, "reduce_scatter", 1);
  expect_tensors(view, "reduce_scatter");
  // checks: reduce_scatter C7: computation takes two scalars of the operand's element type and returns one
  // checks: reduce_scatter C1: the group's size divides dimension scatter_dimension
  expect_reducer(view, "reduce_scatter", "C7");
  const int64_t group_size = written_group_size(view, "reduce_scatter");
  const bool known = group_size > 1 || (group_size == 1 && channel_of(view) <= 0);
  return scattered_types(view, known ? group_size : tensor::kDynamicDim);
}

std::vector<ir::Type> infer_collective_permute(const OpView& view) {
  expect_tensors(view, "collective_permute");
  source_target_pairs_of(view);
  return agree(view, "collective_permute C5", {view.operands.begin(), view.operands.end()});
}

std::vector<ir::Type> infer_collective_broadcast(const OpView& view) {
  expect_tensors(view, "collective_broadcast");
  replica_groups_of(view, "collective_broadcast");
  return agree(view, "collective_broadcast C3", {view.operands.begin(), view.operands.end()});
}

}  // namespace meshd::ops
