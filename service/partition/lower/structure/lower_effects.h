// Lowers custom calls: callbacks become effects (kEffect), layout markers become their operands, functions of their
// operands are lowered by their rule, other targets are refused by name.
#pragma once

#include <span>

#include "service/partition/lower/context.h"

namespace meshd::partition {

/// Throws unsupported_custom_call with the reason.
void lower_custom_call(LoweringContext& context, const ir::Op& op, const Scope& scope);
/// A callback.
void lower_effect(LoweringContext& context, const ir::Op& op, const Scope& scope);
/// An effect at the next program point, on replicated operands. `value_operands`, `value_results`: numbers of those
/// that are not tokens. Inside a manual computation it happens on every device.
void append_effect(LoweringContext& context, const ir::Op& op, EffectPoint point, std::span<const int> value_operands,
                   std::span<const int> value_results, const Scope& scope);

}  // namespace meshd::partition
