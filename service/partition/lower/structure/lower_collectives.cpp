#include "service/partition/lower/structure/lower_collectives.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "service/ops/kernel_interface.h"
#include "service/ops/rule_views.h"
#include "service/partition/lower/builder/local_ops.h"
#include "service/partition/lower/ruled/sharding_choice.h"

namespace meshd::partition {
namespace {

// Sub-axes along which members of a group differ, or a target from its source.
sharding::SubAxisSet mixed_sub_axes(const sharding::MeshView& view, const std::vector<std::vector<int64_t>>& groups,
                                    int64_t device_count) {
  const std::vector<int64_t> position_of = view.position_of_flat(device_count);
  sharding::SubAxisSet sub_axes = 0;
  for (const auto& group : groups) {
    const tensor::Dims first = view.coordinates(view.all(), position_of[static_cast<size_t>(group.front())]);
    for (const int64_t member : group) {
      const tensor::Dims coords = view.coordinates(view.all(), position_of[static_cast<size_t>(member)]);
      for (size_t a = 0; a < coords.size(); ++a) {
        if (coords[a] != first[a]) sub_axes |= sharding::SubAxisSet{1} << a;
      }
    }
  }
  return sub_axes;
}

// The sub-axes S such that every group is exactly the positions that agree outside of S; nothing when the groups are no
// such thing. `mixed`: mixed_sub_axes().
std::optional<sharding::SubAxisSet> sub_axes_of_groups(const sharding::MeshView& view,
                                                       const std::vector<std::vector<int64_t>>& groups,
                                                       sharding::SubAxisSet mixed) {
  if (groups.empty()) return std::nullopt;
  const int64_t size = view.distinct_count(mixed);
  int64_t covered = 0;
  for (const auto& group : groups) {
    if (static_cast<int64_t>(group.size()) != size) return std::nullopt;
    covered += size;
  }
  return covered == view.position_count() ? std::optional(mixed) : std::nullopt;
}

// Rows of two or more device numbers in an attribute of the op, each replaced by its place among the devices of the
// view, ascending; -1 (padding of short groups) stays. Throws invalid_program for other devices.
void count_within(const std::vector<int64_t>& devices, ir::Op& op, std::string_view name) {
  for (auto& entry : op.attributes) {
    const auto* dense = entry.name == name ? entry.value.as<ir::DenseAttr>() : nullptr;
    if (dense == nullptr) continue;
    std::vector<int64_t> ids = ir::dense_ints(*dense);
    for (int64_t& id : ids) {
      if (id == -1) continue;
      const auto found = std::lower_bound(devices.begin(), devices.end(), id);
      if (found == devices.end() || *found != id) {
        ir::fail("invalid_program", op.location,
                 fmt::format("'{}' names device {}, which is not in the mesh of the manual computation around it: its "
                             "devices are {}",
                             op.name, id, tensor::to_string(std::span<const int64_t>(devices))));
      }
      id = found - devices.begin();
    }
    entry.value = {ir::dense_integers_attr(ids, dense->type.dims)};
  }
}

// The groups of a collective, in device numbers of the run. In a manual computation over some of the run's devices they
// are made of these devices, as if there were no others.
std::vector<std::vector<int64_t>> groups_of(const LoweringContext& context, const ir::Op& op,
                                            const ops::GroupKernel& kernel, const Scope& scope) {
  const sharding::MeshView& view = context.builder.view(scope.view);
  const int64_t count = view.position_count();
  if (context.views.is_over_all(scope.view)) return kernel.groups(ops::OpInstance(context.main, op).view, count);
  std::vector<int64_t> devices = view.flat_of_position;
  std::sort(devices.begin(), devices.end());
  ir::Op within = op;
  for (const std::string_view name : {"replica_groups", "source_target_pairs"}) count_within(devices, within, name);
  std::vector<std::vector<int64_t>> groups = kernel.groups(ops::OpInstance(context.main, within).view, count);
  for (std::vector<int64_t>& group : groups) {
    for (int64_t& member : group) member = devices.at(static_cast<size_t>(member));
  }
  return groups;
}

// Layouts of a collective's operands and then results, sharded only by sub-axes on which all members of a group agree.
// `mixed`: the others.
std::vector<ShardLayout> collective_layouts(const LoweringContext& context, const ir::Op& op, const ops::OpDef& def,
                                            const ops::OpView& view, sharding::SubAxisSet mixed, const Scope& scope) {
  std::vector<ShardLayout> layouts;
  std::vector<OpTensor> op_tensors;
  for (const ir::ValueId id : op.operands) {
    layouts.push_back(replicated(context.main.type_of(id).rank(), scope.view));
    op_tensors.push_back({context.main.type_of(id).dims(), context.builder.layout(context.local(id))});
  }
  for (const ir::ValueId id : op.results) {
    layouts.push_back(replicated(context.main.type_of(id).rank(), scope.view));
    op_tensors.push_back({context.main.type_of(id).dims(), wanted(context, id, scope)});
  }
  for (const OpTensor& op_tensor : op_tensors) {
    if (op_tensor.layout.view != scope.view) return layouts;
  }
  const auto rule = ops::lowering_rule_of(def, view);
  if (!rule) return layouts;
  // Members of a group must hold the same shard along other axes.
  Scope around = scope;
  around.manual |= mixed;
  const std::optional<ops::Combine> no_combine;
  const std::vector<bool> unsharded =
      unsharded_factors(context, op, def, view, *rule, rule->factors.size(), no_combine);
  const FactorSubAxes choice = least_moving(context, {op, *rule, op_tensors, unsharded, no_combine}, around).first;
  if (choice.view != scope.view) return layouts;
  for (size_t i = 0; i < op.operands.size(); ++i) layouts[i] = layout_of(choice, rule->operands[i]);
  for (size_t i = 0; i < op.results.size(); ++i) layouts[op.operands.size() + i] = layout_of(choice, rule->results[i]);
  return layouts;
}

}  // namespace

void lower_replica_id(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  const std::vector<std::byte> zero(sizeof(uint32_t));
  context.define(op.results.front(),
                 add_scalar(context.builder, tensor::DType::kUint32, zero, scope.view, op.location));
}

void lower_partition_id(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  LocalOp made;
  made.kind = LocalKind::kPosition;
  made.name = op.name;
  made.location = op.location;
  const LocalId value =
      context.builder.add_value(context.main.type_of(op.results.front()).tensor, replicated(0, scope.view),
                                context.builder.view(scope.view).all(), "partition_id");
  made.results = {value};
  context.builder.append(std::move(made));
  context.define(op.results.front(), value);
}

void lower_collective(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  Builder& builder = context.builder;
  const ops::OpDef& def = ops::op(op.code);
  const auto& kernel = std::get<ops::GroupKernel>(def.body);
  const sharding::MeshView& view = builder.view(scope.view);
  const ops::OpInstance global(context.main, op);
  const ops::OpView& op_view = global.view;

  LocalOp made;
  made.def = &def;
  made.name = op.name;
  made.attributes = op.attributes;
  made.regions = op.regions;
  made.location = op.location;
  made.groups = groups_of(context, op, kernel, scope);
  const sharding::SubAxisSet mixed = mixed_sub_axes(view, made.groups, builder.program().device_count());
  const auto sub_axes = kernel.is_permutation ? std::nullopt : sub_axes_of_groups(view, made.groups, mixed);
  const ops::PreparedGroup prepared =
      kernel.prepare(op_view, made.groups.empty() ? 1 : static_cast<int64_t>(made.groups.front().size()));
  const std::vector<ShardLayout> layouts = collective_layouts(context, op, def, op_view, mixed, scope);

  sharding::SubAxisSet operand_varies = 0;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const std::string reason = fmt::format("operand {} of {}", i, op.name);
    const LocalId operand = layouts[i].mask() == 0
                                ? reshard_to_replicated(context, op.operands[i], scope, op.location, reason)
                                : builder.reshard(context.local(op.operands[i]), layouts[i], op.location, reason);
    if (builder.layout(operand).view != scope.view) {
      ir::fail("unsupported_partition", op.location, "'" + op.name + "' over another mesh than its operand's");
    }
    made.operands.push_back(operand);
    operand_varies |= builder.type(operand).varies;
  }
  // An all-reduce whose groups run along axes is computed once for each of its results.
  const sharding::SubAxisSet along = sub_axes.value_or(0);
  const bool reduces =
      sub_axes.has_value() && prepared.same_for_all && op.regions.size() == 1 && global.operands == global.results;
  if (reduces) {
    made.kind = LocalKind::kReduceShards;
    made.reduced = along;
    for (LocalId& operand : made.operands) {
      operand = builder.vary(operand, builder.type(operand).varies | along, op.location, "operand of " + op.name);
    }
  } else {
    made.kind = LocalKind::kGroup;
  }
  for (size_t i = 0; i < op.results.size(); ++i) {
    sharding::SubAxisSet varies = view.all();
    if (sub_axes.has_value()) varies = prepared.same_for_all ? operand_varies & ~along : operand_varies | along;
    if (reduces) varies = builder.type(made.operands[i]).varies & ~along;
    const ShardLayout& layout = layouts[op.operands.size() + i];
    const LocalId result = context.add_value(op.results[i], layout, varies & ~layout.mask());
    made.results.push_back(result);
    context.define(op.results[i], result);
  }
  builder.append(std::move(made));
}

}  // namespace meshd::partition
