// The outer loops: user priorities around op priorities around a worklist of nodes, each of which lets its tensors
// grow.
#pragma once

#include "service/propagation/graph.h"
#include "service/propagation/import_steps.h"

namespace meshd::propagation {

/// Runs all rounds until nothing changes. Bounded: gives up quietly (keeping what it has) when a program makes
/// shardings go round in circles. Drops ops that nobody uses on the way, as Shardy's rewriter does.
void run_rounds(Graph& graph, const Groups& groups);

}  // namespace meshd::propagation
