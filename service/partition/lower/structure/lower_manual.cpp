#include "service/partition/lower/structure/lower_manual.h"

#include <fmt/core.h>

#include <algorithm>

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

}  // namespace

void lower_manual(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  Builder& builder = context.builder;
  const auto& in = shardings_of(op, "in_shardings");
  const auto& out = shardings_of(op, "out_shardings");
  const std::vector<std::string> axis_names = manual_axis_names(op);
  mesh::MeshRef mesh;
  for (const auto* list : {&in, &out}) {
    for (const sharding::TensorSharding& sharding : *list) {
      if (mesh == nullptr && sharding.mesh != nullptr && !sharding.mesh->axes.empty()) mesh = sharding.mesh;
    }
  }
  Scope inner = scope;
  inner.inside_manual = true;
  if (mesh != nullptr) {
    inner.view = context.views.view_of(mesh);
    if (scope.manual != 0 && inner.view != scope.view) {
      ir::fail("unsupported_partition", op.location,
               "nested manual computations over meshes whose axes do not line up");
    }
    for (const std::string& name : axis_names) {
      const auto axis = mesh->axis_index(name);
      if (!axis)
        ir::fail("invalid_program", op.location,
                 fmt::format("manual axis '{}' is not an axis of {}", name, mesh::to_sdy(*mesh)));
      inner.manual |= mask_of(context.views.sub_axes_of(mesh, {*axis, 1, 0}));
    }
  }
  const sharding::MeshView& view = builder.view(inner.view);
  const sharding::SubAxisSet fresh = inner.manual & ~scope.manual;

  // The free axes at an edge: kept where they divide what a manual shard holds, so that both views of the bytes agree.
  const auto free_places = [&](const sharding::TensorSharding& edge, ir::ValueId inside_value) {
    const ir::Type& type = context.main.type_of(inside_value);
    ShardLayout layout = replicated(type.rank(), inner.view);
    if (edge.mesh != nullptr && !edge.mesh->axes.empty() && context.views.view_of(edge.mesh) == inner.view)
      layout = resolve_layout(context.views, edge).without(inner.manual);
    for (size_t d = 0; d < layout.dims.size(); ++d) {
      if (type.dims()[d] % sharding::part_count(view, layout.dims[d]) != 0) layout.dims[d].clear();
    }
    return layout;
  };
  // The manual sub-axes of a sharding in front, the free ones behind.
  const auto outside_places = [&](const sharding::TensorSharding& sharding, const ShardLayout& free, int64_t rank) {
    ShardLayout manual = replicated(rank, inner.view);
    if (sharding.mesh != nullptr && !sharding.mesh->axes.empty())
      manual = resolve_layout(context.views, sharding).without(~fresh);
    manual.view = inner.view;
    for (size_t d = 0; d < manual.dims.size(); ++d) {
      manual.dims[d].insert(manual.dims[d].end(), free.dims[d].begin(), free.dims[d].end());
    }
    return manual;
  };

  const ir::Region& body = op.regions.front();
  for (size_t i = 0; i < body.arguments.size(); ++i) {
    if (is_token(context, body.arguments[i])) continue;
    if (i < in.size() && !in[i].unreduced.empty()) {
      ir::fail("unsupported_attribute", op.location, "unreduced axes of an operand of a manual computation");
    }
    const ir::Type& inside_type = context.main.type_of(body.arguments[i]);
    const ShardLayout free = free_places(in[i], body.arguments[i]);
    const ShardLayout outside = outside_places(in[i], free, inside_type.rank());
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
    const ShardLayout free = free_places(out[i], returned[i]);
    const ShardLayout outside = outside_places(out[i], free, type.rank());
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
