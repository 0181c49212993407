// User priorities (Shardy's user_priority_propagation.cc): dimensions of a later priority are empty and closed, their
// axes reserved, until their round.
#pragma once

#include <vector>

#include "service/propagation/graph/graph.h"

namespace meshd::propagation {

/// One annotated value (or result of @main) and what was written.
struct PrioritizedSharding {
  int tensor = -1;
  int result = -1;
  OpenSharding written;
};

/// The dimensions that join in one round.
struct PriorityRound {
  int priority = 0;
  std::vector<PrioritizedSharding> shardings;
};

/// Takes priorities out of the graph: what is left is round 0; the other rounds are returned, first to last.
std::vector<PriorityRound> take_priorities(Graph& graph);
/// Puts the dimensions of a round into the graph as they were written.
void enter_round(Graph& graph, const PriorityRound& round);

}  // namespace meshd::propagation
