// Finds steps that follow each other, and loops, that each shard can execute without waiting for the others.
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
//
// A loop is executed shard by shard, all its iterations for one shard and then for the next, where its steps would be one
// sequence, but for two things. Values that all shards have in common are allowed, counters and the condition: their
// steps are small, and each thread executes them for itself, in memory of its own. And slots that share bytes (3) may be
// each thread's own as well: such slots are not carried from one iteration to the next, because what is carried shares
// its bytes with no slot that lives in the loop (buffer_assignment.h).
//
// Example: 8 shards; while i < 20: y = tanh(y), i = i + 1. In: a compare over one shard; tanh over 8, an add over one.
// Out: ShardWhileStep{table of y, own {i, i < 20}}: two threads have four shards each, and meet behind the last.
#pragma once

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Sets Step::sequence and Step::by_shard of the plan's steps. Needs slots and tables.
void find_shard_sequences(Plan& plan);

}  // namespace meshd::compile
