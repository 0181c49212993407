#include "service/partition/lower/structure/lower_effects.h"

#include "service/ops/linalg/custom_calls.h"
#include "service/partition/lower/builder/local_ops.h"
#include "service/partition/lower/ruled/lower_ops.h"

namespace meshd::partition {
namespace {

// The view of the devices on which the effect happens: a maximal mesh of its annotation names one, and what happens on
// every device of a manual computation happens on those of the computation.
int view_of_effect(const LoweringContext& context, const ir::Op& op, const EffectPoint& point, const Scope& scope) {
  const ir::Attribute* attribute = ir::find(op.attributes, "sdy.sharding");
  const auto* said = attribute == nullptr ? nullptr : attribute->as<ir::ShardingAttr>();
  const bool is_on_one = !point.every_device && said != nullptr && !said->shardings.empty() &&
                         said->shardings.front().mesh != nullptr && said->shardings.front().mesh->is_maximal();
  return is_on_one ? context.views.view_of(said->shardings.front().mesh) : scope.view;
}

}  // namespace

void append_effect(LoweringContext& context, const ir::Op& op, EffectPoint point, std::span<const int> value_operands,
                   std::span<const int> value_results, const Scope& around) {
  LocalOp made;
  made.kind = LocalKind::kEffect;
  made.name = op.name;
  made.attributes = op.attributes;
  made.location = op.location;
  made.effect = std::move(point);
  made.effect.every_device = made.effect.every_device || around.inside_manual;
  Scope scope = around;
  scope.view = view_of_effect(context, op, made.effect, around);
  made.view = scope.view;
  made.effect.program_point = static_cast<int32_t>(context.builder.program().effect_count++);
  for (const int operand : value_operands) {
    made.operands.push_back(reshard_to_replicated(
        context, op.operands[static_cast<size_t>(operand)], scope, op.location,
        made.effect.form == EffectForm::kCallback ? "operand of a callback" : "operand of " + op.name));
  }
  const sharding::SubAxisSet varies = made.effect.every_device ? context.builder.view(scope.view).all() : 0;
  for (const int result : value_results) {
    const ir::ValueId id = op.results[static_cast<size_t>(result)];
    const LocalId value = context.add_value(id, replicated(context.main.type_of(id).rank(), scope.view), varies);
    made.results.push_back(value);
    context.define(id, value);
  }
  context.builder.append(std::move(made));
}

void lower_effect(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  const ops::OpInstance global(context.main, op);
  const ops::EffectInfo info = ops::effect_of(global.view);
  EffectPoint point;
  point.callback = info.index;
  point.ordered = info.ordered;
  point.has_side_effect = info.has_side_effect;
  point.every_device = info.per_device;
  append_effect(context, op, std::move(point), info.value_operands, info.value_results, scope);
}

void lower_custom_call(LoweringContext& context, const ir::Op& op, const Scope& scope) {
  Builder& builder = context.builder;
  const ops::OpInstance global(context.main, op);
  const ops::OpView& view = global.view;
  if (const auto reason = ops::reason_not_run(view)) ir::fail("unsupported_custom_call", op.location, *reason);
  const ops::CustomCallDef* row = ops::find_custom_call(ops::target_of(view));
  switch (row->kind) {
    case ops::CustomCallKind::kCallback:
      return lower_effect(context, op, scope);
    case ops::CustomCallKind::kShapeAssertion:
      return;  // dims were specialised, the assertion held then
    case ops::CustomCallKind::kShardingMarker:
    case ops::CustomCallKind::kIdentity:
      for (size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
        if (is_token(context, op.results[i])) continue;
        LocalId value = context.local(op.operands[i]);
        if (builder.type(value).outer() == 0 && sharding_of(context, op.results[i])) {
          value = builder.reshard(value, wanted(context, op.results[i], scope), op.location, "constraint");
        } else if (row->kind == ops::CustomCallKind::kShardingMarker && builder.layout(value).mask() != 0) {
          // Propagation does not pass through: a reshard behind it is attributed to it.
          value = alias(builder, value, op.location);
          builder.sources().mark_unruled(value);
        }
        context.define(op.results[i], value);
      }
      return;
    case ops::CustomCallKind::kFullToShard:
    case ops::CustomCallKind::kShardToFull:
    case ops::CustomCallKind::kBounds:
    case ops::CustomCallKind::kCompute:
      break;
  }
  lower_ruled(context, op, scope);
}

}  // namespace meshd::partition
