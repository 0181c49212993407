// Custom calls: callbacks become effects, markers of layout become what they mark; other targets are refused by
// name.
#include <algorithm>

#include "service/ops/linalg/custom_calls.h"
#include "service/partition/lower/lowering.h"

namespace meshd::partition {

void Lowering::lower_custom_call(const ir::Op& op, const Scope& scope) {
  const std::vector<ir::Type> operand_types = types_of(op.operands);
  const std::vector<ir::Type> result_types = types_of(op.results);
  const ops::OpView view{operand_types, result_types, &op.attributes, op.regions, &module_main_, &op.location};
  if (const auto reason = ops::reason_not_run(view)) ir::fail("unsupported_custom_call", op.location, *reason);
  const ops::CustomCallDef* row = ops::find_custom_call(ops::target_of(view));
  switch (row->kind) {
    case ops::CustomCallKind::kCallback:
      return lower_effect(op, scope);
    case ops::CustomCallKind::kShapeAssertion:
      return;  // dims were specialised, the assertion held then
    case ops::CustomCallKind::kShardingMarker:
    case ops::CustomCallKind::kIdentity:
      for (size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
        if (is_token(op.results[i])) continue;
        LocalId value = local(op.operands[i]);
        if (builder_.type(value).outer() == 0 && has_sharding(op.results[i])) {
          value = builder_.reshard(value, wanted(op.results[i], scope), op.location, "constraint");
        } else if (row->kind == ops::CustomCallKind::kShardingMarker && builder_.layout(value).mask() != 0) {
          // Propagation does not see through: what must lie elsewhere behind it is moved because of it.
          value = builder_.alias(value, op.location);
          builder_.mark_unruled(value);
        }
        define(op.results[i], value);
      }
      return;
    case ops::CustomCallKind::kFullToShard:
    case ops::CustomCallKind::kShardToFull:
    case ops::CustomCallKind::kCompute:
      break;
  }
  lower_ruled(op, ops::op(op.code), scope);
}

void Lowering::lower_effect(const ir::Op& op, const Scope& scope) {
  const std::vector<ir::Type> operand_types = types_of(op.operands);
  const std::vector<ir::Type> result_types = types_of(op.results);
  const ops::EffectInfo info =
      ops::effect_of({operand_types, result_types, &op.attributes, op.regions, &module_main_, &op.location});
  EffectPoint point;
  point.callback = info.index;
  point.ordered = info.ordered;
  point.has_side_effect = info.has_side_effect;
  point.every_device = info.per_device;
  append_effect(op, std::move(point), info.value_operands, info.value_results, scope);
}

void Lowering::append_effect(const ir::Op& op, EffectPoint point, std::span<const int> value_operands,
                             std::span<const int> value_results, const Scope& scope) {
  LocalOp made;
  made.kind = LocalKind::kEffect;
  made.name = op.name;
  made.attributes = op.attributes;
  made.location = op.location;
  made.effect = std::move(point);
  made.effect.every_device = made.effect.every_device || scope.inside_manual;
  made.effect.program_point = static_cast<int32_t>(builder_.program().effect_count++);
  for (const int operand : value_operands) {
    made.operands.push_back(reshard_to_replicated(
        op.operands[static_cast<size_t>(operand)], scope, op.location,
        made.effect.form == EffectForm::kCallback ? "operand of a callback" : "operand of " + op.name));
  }
  const sharding::SubAxisSet varies = made.effect.every_device ? builder_.view(scope.view).all() : 0;
  for (const int result : value_results) {
    const ir::ValueId id = op.results[static_cast<size_t>(result)];
    const LocalId value =
        builder_.add_value(module_main_.type_of(id).tensor, replicated(module_main_.type_of(id).rank(), scope.view),
                           varies, module_main_.values[static_cast<size_t>(id)].name);
    made.results.push_back(value);
    define(id, value);
  }
  builder_.append(std::move(made));
}

}  // namespace meshd::partition
