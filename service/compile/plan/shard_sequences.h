// Finds steps that follow each other and that each shard can execute without waiting for the others.
//
// Between two collectives a device's steps need nothing of other devices. Executed step by step over all shards, each
// step reads again what the caches have lost meanwhile, and the threads meet after each step; executed shard by shard,
// a shard stays in the caches and the threads meet once. A sequence ends where
//   1. a step is no kernel, or one over another table, or over one shard, or one without results: it is there for its
//      error, which must not come before that of an earlier step on another shard;
//   2. the kernel has barriers or a workspace, or packs an operand that all shards have once for all of them;
//   3. a shard would touch bytes that another one writes in the sequence: slots that are live at different times may
//      share bytes of the arena, and where their strides differ, those of shard 2 of one are those of shard 5 of the
//      other. What only the same shards of two slots share is no hazard: a shard's steps stay in order.
//
// Example: 8 shards; slots a and b (stride 128) at 0 and 1024, c (stride 64) at 0. In: b = f(a), a = g(b), c = h(b).
// Out: a sequence of f and g. c's shard 2 has the bytes of a's shard 1, which another thread may still read for g.
#pragma once

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Sets Step::sequence of the plan's steps. Needs slots and tables.
void find_shard_sequences(Plan& plan);

}  // namespace meshd::compile
