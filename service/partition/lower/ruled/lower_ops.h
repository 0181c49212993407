// Lowers an op with a factor rule: which factors are sharded by which sub-axes, what is resharded, what is reduced.
//
// Invariant: where the op cannot be lowered on its shards, the builder is rewound and the op runs replicated.
//
// Steps of lower_ruled():
//   1. Get the row's factor rule of this instance. Without one, lower_replicated: replicate the operands.
//   2. unsharded_factors (sharding_choice.h): need-replication and permutation factors, reductions whose partial
//      results cannot be combined or whose padding cannot be masked, pass-through factors that only operands have, or
//      only results (but new_dims_may_be_sharded), and those that the row's keeps_unsharded names.
//   3. least_moving (sharding_choice.h): the greedy choice of factor_choice.h. Where it moves bytes, other candidates
//      are compared. One that uses fewer devices counts only for ops that read their operands once (reduce, gather).
//   4. The same with each halo of the row (halo_rule.h). A halo wins where it moves fewer bytes, is as parallel, and
//      sums over parts of one size.
//   5. Reshard the operands to the choice. Where a sharded reduction factor is uneven, mask the padding with the
//      identity of the reducer.
//   6. begin_once (lower_partial.h): start values of a sharded reduction count on the first shard only.
//   7. Append the op on local types: emit_op, emit_fetching behind a halo exchange, or emit_on_shard for picks
//      (gather). OpDef::localize gives the local attributes.
//   8. combine_partials (lower_partial.h): all-reduce over the sub-axes of sharded reduction factors. Where propagation
//      shards the result by these sub-axes, a slice follows, and both together are a reduce-scatter.
//   9. Reshard results that @main returns, and mark broadcasts of scalars as rematerialisable.
//
// Example, mesh x=2, y=4: dot_general of 8x16 [{}, {x}] and 16x8 [{x}, {}], k=16 a reduction factor.
//   Step 3: k={x}, no reshard.  Step 7: 8x8 . 8x8 -> 8x8 on each device, partial over x.
//   Step 8, result [{}, {}]: all_reduce, a device receives 2 (256 - 128) bytes.
//   Step 8, result [{x}, {}]: reduce_scatter to 4x8, a device receives 256 - 128 bytes.
#pragma once

#include "service/partition/lower/context.h"

namespace meshd::partition {

/// An op with a factor rule, or without one on replicated operands. Throws what its row's functions throw.
void lower_ruled(LoweringContext& context, const ir::Op& op, const Scope& scope);
/// An op without operands, computed again in every layout that a user needs: a constant, iota and similar ops.
void lower_rematerialised(LoweringContext& context, const ir::Op& op, const Scope& scope);

}  // namespace meshd::partition
