// Finds loops that each shard can execute without waiting for the others.
//
// A loop is executed shard by shard, all its iterations for one shard and then for the next, where its steps would be
// one sequence (shard_sequences.h), but for two things. Replicated values are allowed, counters and
// the condition: their steps are small, and each thread executes them for itself, in memory of its own. And slots that
// share bytes, at which a sequence ends, may be each thread's own as well: such slots are not carried from one
// iteration to the next, because what is carried shares its bytes with no slot that lives in the loop
// (buffer_assignment.h).
//
// Example: 8 shards; while i < 20: y = tanh(y), i = i + 1. In: a compare over one shard; tanh over 8, an add over one.
// Out: ShardWhileStep{table of y, own {i, i < 20}}: two threads have four shards each, and meet behind the last.
#pragma once

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Sets Step::by_shard of the plan's loops. Needs slots and tables.
void find_shard_whiles(Plan& plan);

}  // namespace meshd::compile
