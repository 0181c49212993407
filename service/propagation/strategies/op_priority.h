// Op priorities (Shardy's op_priority_propagation.cc): five cumulative steps.
#pragma once

#include <vector>

#include "service/propagation/graph/graph.h"
#include "service/propagation/strategies/factor_propagation.h"

namespace meshd::propagation {

/// (0) pass-through ops whose operands have no other use; (1) all pass-through ops; (2) pass-through factors of any op,
/// broadcasts backward only; (3) anything but broadcasts forward; (4) anything.
inline constexpr int kStepCount = 5;

/// Directions of a node's factors in step `step`: what any step up to it allows. Blocked factors never propagate.
std::vector<Direction> directions_in_step(const Graph& graph, const Node& node, int step);

}  // namespace meshd::propagation
