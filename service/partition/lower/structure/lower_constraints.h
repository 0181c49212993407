// Lowers sharding constraints, reshards and barriers: they become reshards or nothing.
#pragma once

#include "service/partition/lower/context.h"

namespace meshd::partition {

/// A sharding constraint or reshard, and Shardy's collectives. A constraint on a value that is only passed on is
/// dropped: its user has a sharding of its own.
void lower_constraint(LoweringContext& context, const ir::Op& op, const Scope& scope);
/// Results are the operands: optimisation and propagation barriers.
void lower_barrier(LoweringContext& context, const ir::Op& op, const Scope& scope);

}  // namespace meshd::partition
