// The outer loops of propagation: user priorities around op priorities around a worklist of nodes. Shardy's
// user_priority_propagation.cc, op_priority_propagation.cc and basic_propagation.cc over MLIR's greedy rewriter.
//
// Invariant: nodes are visited in MLIR's order, because the first node that shards a dimension decides.
//
// Steps of run_rounds():
//   1. take_priorities: dimensions with a user priority above 0 become empty and closed, their axes reserved.
//   2. Round 0 with what is left; then, for each priority in ascending order, enter_round gives its dimensions back and
//      one more round runs.
//   3. A round is the steps 0 to 4 of op_priority.h. Each propagates between returned values and the results of @main,
//      makes one pass over the nodes, and propagates to the results again.
//   4. A pass queues all nodes top down. It drops unused nodes and visits the others. A visit projects the node's
//      shardings onto its factors (projection.h), grows them (factor_propagation.h) and writes them back.
//   5. A change queues the node that defines the tensor and its users again. A change of one member of a sharding group
//      or one target of an edge is a change of all.
//
// Example, mesh x=2, y=4: %0 = dot_general(8x16 [{"x"}, {?}], 16x32 [{?}, {"x"}]); %1 = add %0, %2 with %2 8x32
// [{?}, {"y"}].
//   step 0: add is pass-through, dot_general is not -> %0 and %1 have [{?}, {"y", ?}]
//   step 2: dot_general, factor i -> %0 has [{"x", ?}, {"y", ?}]; then add -> %1 the same, %2 [{"x", ?}, {"y"}]
#pragma once

#include "service/propagation/graph/graph.h"
#include "service/propagation/import/import_steps.h"

namespace meshd::propagation {

/// Runs all rounds. Bounded: where shardings do not converge, the last ones stay. Drops dead ops, as Shardy's rewriter
/// does. Throws unsupported_attribute for more than 64 different priorities.
void run_rounds(Graph& graph, const Groups& groups);

}  // namespace meshd::propagation
