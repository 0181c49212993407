// Lowers ops with regions. Loops and branches keep each carried value in one layout: that of the initial value, the
// arguments of both regions, the next value and the result.
//
// Steps of lower_while(): lower both regions with the varying sub-axes of the initial values; where the next values or
// the condition vary over more, rewind and lower again with these. The sets only grow, so the rounds end.
// Example, x=2: s = 0 (replicated) and s += %v, %v 4 rows per shard summed on each shard: round 1 has s vary over {},
// its next value varies over {x}; round 2 has s vary over {x} everywhere.
#pragma once

#include "service/partition/lower/context.h"

namespace meshd::partition {

void lower_while(LoweringContext& context, const ir::Op& op, const Scope& scope);
/// case and if: the index is replicated, results of all branches get one layout.
void lower_case(LoweringContext& context, const ir::Op& op, const Scope& scope);
/// A named computation or composite: its region in place.
void lower_inline_region(LoweringContext& context, const ir::Op& op, const Scope& scope);

}  // namespace meshd::partition
