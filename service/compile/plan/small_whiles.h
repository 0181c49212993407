// Finds the loops of a plan whose steps are all small: they are executed as one step.
//
// A loop of scalars and short vectors spends its time between its steps: a step costs some 60 ns, its arithmetic 5. One
// whose condition and body consist of fused loops over at most kBlockLanes lanes, of copies, and of the other steps of
// kernels/fused/small_step.h becomes a kernels::SmallWhile. Its steps exchange nothing between shards, so each shard of
// the table with most shards executes the loop alone, with a block of registers of its own; values that several of
// these shards share are computed by each, bit by bit alike.
//
// 1. The widest table: that of the step with most shards. Each of its shards must hold one shard of every other table.
// 2. Values: one for each slot (and shard of it) that a step reads or writes.
// 3. Written back are those written by a step, but for those whose bytes of the arena another value has as well: these
//    are temporaries of one iteration, since what is alive where the condition begins shares its bytes with none.
//    Arrays of which steps read and write rows stay in memory; each is one shard's own, and shares its bytes with none.
//
// Example: 8 devices; i and n on all of them, v f32[128] sharded. In: condition p = i < n (1 shard), body i = i + 1
// (1 shard), v = sin(v) + 0.5 (8 shards). Out: 8 blocks with values i, n, p, v; every block counts i for itself.
#pragma once

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Sets Step::small of the plan's loops that have one. Needs steps, slots with their first pointers, and tables.
/// Returns the scratch bytes that the largest of them takes.
int64_t find_small_whiles(Plan& plan);

}  // namespace meshd::compile
