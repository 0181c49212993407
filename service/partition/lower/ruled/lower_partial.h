// Partial results of a sharded reduction factor and the all-reduce that combines them.
//
// Example, y=2: reduce of 16 values with start value s over [{y}]. Shard 0 begins with s, shard 1 with the identity
// (begin_once); each reduces 8 values, partial over y; an all-reduce over y gives the result (combine_partials).
#pragma once

#include <vector>

#include "service/ops/op_def.h"
#include "service/ops/shards/shard_rules.h"
#include "service/partition/lower/context.h"

namespace meshd::partition {

/// True when a start value must count on one shard only: the reducer is not idempotent, and the value is not known to
/// be its identity.
bool begins_once(const LoweringContext& context, const ops::Combine& combine, size_t result, LocalId start);
/// Start values of partial results: the first shard along `partial` begins with the op's, the others with the identity.
void begin_once(LoweringContext& context, const ir::Op& op, const ops::Combine& combine, sharding::SubAxisSet partial,
                int view, std::vector<LocalId>& operands);
/// All-reduces the op's partial results over `partial`; where they are read sharded by these sub-axes, slices follow.
void combine_partials(LoweringContext& context, const ir::Op& op, const ops::Combine& combine,
                      sharding::SubAxisSet partial, const Scope& scope);

}  // namespace meshd::partition
