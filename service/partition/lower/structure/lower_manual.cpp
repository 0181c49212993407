#include "service/partition/lower/structure/lower_manual.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/ops/op_def.h"
#include "service/partition/lower/builder/local_ops.h"
#include "service/partition/lower/lowering.h"

namespace meshd::partition {
namespace {

const std::vector<sharding::TensorSharding>& shardings_of(const ir::Op& op, std::string_view name) {
  const ir::Attribute* found = ir::find(op.attributes, name);
  const auto* list = found == nullptr ? nullptr : found->as<ir::ShardingAttr>();
  if (list == nullptr) ir::fail("invalid_program", op.location, "'" + op.name + "' needs " + std::string(name));
  return list->shardings;
}

std::vector<std::string> manual_axis_names(const ir::Op& op) {
  std::vector<std::string> names;
  const ir::Attribute* found = ir::find(op.attributes, "manual_axes");
  const auto* list = found == nullptr ? nullptr : found->as<ir::ArrayAttr>();
  if (list == nullptr) ir::fail("invalid_program", op.location, "'" + op.name + "' needs manual_axes");
  for (const ir::Attribute& entry : list->values) {
    if (const auto* text = entry.as<ir::StringAttr>()) names.push_back(text->value);
  }
  return names;
}

// The scope of a manual computation's body.
Scope scope_inside(const LoweringContext& context, const ir::Op& op, const Scope& scope) {
  mesh::MeshRef mesh;
  for (const std::string_view name : {"in_shardings", "out_shardings"}) {
    for (const sharding::TensorSharding& sharding : shardings_of(op, name)) {
      if (mesh == nullptr && sharding.mesh != nullptr && !sharding.mesh->axes.empty()) mesh = sharding.mesh;
    }
  }
  const std::vector<std::string> axis_names = manual_axis_names(op);
  Scope inner = scope;
  inner.inside_manual = true;
  if (mesh == nullptr) return inner;
  inner.view = context.views.view_of(mesh);
  if (scope.manual != 0 && inner.view != scope.view) {
    ir::fail("unsupported_partition", op.location, "nested manual computations over meshes whose axes do not line up");
  }
  for (const std::string& name : axis_names) {
    const auto axis = mesh->axis_index(name);
    if (!axis)
      ir::fail("invalid_program", op.location,
               fmt::format("manual axis '{}' is not an axis of {}", name, mesh::to_sdy(*mesh)));
    inner.manual |= mask_of(context.views.sub_axes_of(mesh, {*axis, 1, 0}));
  }
  return inner;
}

// The free axes at an edge: kept where they divide what a manual shard holds, so that both views of the bytes agree.
ShardLayout free_places(const LoweringContext& context, const sharding::TensorSharding& edge, ir::ValueId inside_value,
                        const Scope& inner) {
  const ir::Type& type = context.main.type_of(inside_value);
  ShardLayout layout = replicated(type.rank(), inner.view);
  if (edge.mesh != nullptr && !edge.mesh->axes.empty() && context.views.view_of(edge.mesh) == inner.view)
    layout = resolve_layout(context.views, edge).without(inner.manual);
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    if (type.dims()[d] % sharding::part_count(context.builder.view(inner.view), layout.dims[d]) != 0)
      layout.dims[d].clear();
  }
  return layout;
}

// The manual sub-axes of a sharding in front, the free ones behind; `fresh`: those that this computation makes manual.
ShardLayout outside_places(const LoweringContext& context, const sharding::TensorSharding& sharding,
                           const ShardLayout& free, sharding::SubAxisSet fresh) {
  ShardLayout manual = replicated(static_cast<int64_t>(free.dims.size()), free.view);
  if (sharding.mesh != nullptr && !sharding.mesh->axes.empty())
    manual = resolve_layout(context.views, sharding).without(~fresh);
  manual.view = free.view;
  for (size_t d = 0; d < manual.dims.size(); ++d) {
    manual.dims[d].insert(manual.dims[d].end(), free.dims[d].begin(), free.dims[d].end());
  }
  return manual;
}

}  // namespace

std::map<ir::ValueId, std::vector<ShardLayout>> manual_operands(const LoweringContext& context) {
  std::map<ir::ValueId, std::vector<ShardLayout>> out;
  for (const ir::Op& op : context.main.body.ops) {
    const bool is_manual = ops::role_of(ops::op(op.code).body) == ops::Structural::kManualComputation;
    if (!is_manual || context.uses.dead.contains(&op)) continue;
    const auto& in = shardings_of(op, "in_shardings");
    const Scope inner = scope_inside(context, op, Scope{});
    const std::vector<ir::ValueId>& arguments = op.regions.front().arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool is_read = context.uses.counts[static_cast<size_t>(arguments[i])] > 0;
      if (is_token(context, arguments[i]) || !is_read) continue;
      const ShardLayout free = free_places(context, in[i], arguments[i], inner);
      const ShardLayout outside = outside_places(context, in[i], free, inner.manual);
      std::vector<ShardLayout>& known = out[op.operands[i]];
      if (std::find(known.begin(), known.end(), outside) == known.end()) known.push_back(outside);
    }
  }
  return out;
}

void lower_manual(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  Builder& builder = context.builder;
  const auto& in = shardings_of(op, "in_shardings");
  const auto& out = shardings_of(op, "out_shardings");
  const Scope inner = scope_inside(context, op, scope);
  const sharding::SubAxisSet fresh = inner.manual & ~scope.manual;

  const ir::Region& body = op.regions.front();
  for (size_t i = 0; i < body.arguments.size(); ++i) {
    if (is_token(context, body.arguments[i])) continue;
    if (i < in.size() && !in[i].unreduced.empty()) {
      ir::fail("unsupported_attribute", op.location, "unreduced axes of an operand of a manual computation");
    }
    const ir::Type& inside_type = context.main.type_of(body.arguments[i]);
    const ShardLayout free = free_places(context, in[i], body.arguments[i], inner);
    const ShardLayout outside = outside_places(context, in[i], free, fresh);
    const LocalId operand = builder.reshard(context.local(op.operands[i]), outside, op.location,
                                            fmt::format("operand {} of {}", i, op.name));
    const LocalId inside =
        builder.add_value(inside_type.tensor, free, builder.type(operand).varies, context.name(body.arguments[i]));
    if (builder.type(inside).local != builder.type(operand).local) {
      ir::fail("invalid_program", op.location,
               fmt::format("manual computation: operand {} has local type {}, its body expects {}", i,
                           ir::to_string(builder.value(operand).local_type()),
                           ir::to_string(builder.value(inside).local_type())));
    }
    append_view(builder, operand, inside, op.location);
    context.define(body.arguments[i], inside);
  }

  const std::vector<ir::ValueId> returned = lower_block(context, body, inner);

  for (size_t i = 0; i < op.results.size(); ++i) {
    if (is_token(context, op.results[i])) continue;
    const ir::Type& type = context.main.type_of(op.results[i]);
    const ShardLayout free = free_places(context, out[i], returned[i], inner);
    const ShardLayout outside = outside_places(context, out[i], free, fresh);
    LocalId value =
        builder.reshard(context.local(returned[i]), free, op.location, fmt::format("result {} of {}", i, op.name));
    sharding::SubAxisSet summed = 0;
    for (const sharding::AxisRef& axis : out[i].unreduced)
      summed |= mask_of(context.views.sub_axes_of(out[i].mesh, axis));
    summed &= fresh;
    if (summed != 0) {
      value = builder.vary(value, builder.type(value).varies | summed, op.location, "unreduced result");
      const kernels::ScalarOp reducer = out[i].unreduced_kind == sharding::ReductionKind::kSum ? kernels::ScalarOp::kAdd
                                        : out[i].unreduced_kind == sharding::ReductionKind::kMax
                                            ? kernels::ScalarOp::kMaximum
                                            : kernels::ScalarOp::kMinimum;
      value = all_reduce(builder, value,
                         {.reduced = summed,
                          .op = reducer,
                          .dtype = type.dtype(),
                          .name = {},
                          .location = op.location,
                          .reason = fmt::format("unreduced result {} of {}", i, op.name)});
    }
    const sharding::SubAxisSet varies = outside.mask() | (builder.type(value).varies & ~fresh);
    value = builder.vary(value, varies, op.location, fmt::format("result {} of {}", i, op.name));
    const LocalId outside_value =
        builder.add_value(type.tensor, outside, varies & ~outside.mask(), context.name(op.results[i]));
    if (builder.type(outside_value).local != builder.type(value).local) {
      ir::fail("invalid_program", op.location,
               fmt::format("manual computation: result {} has local type {} inside, {} outside", i,
                           ir::to_string(builder.value(value).local_type()),
                           ir::to_string(builder.value(outside_value).local_type())));
    }
    append_view(builder, value, outside_value, op.location);
    context.define(op.results[i], outside_value);
  }
}

}  // namespace meshd::partition
