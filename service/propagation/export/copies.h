// Copies of one called function that take and give the same shardings are one function again, as in Shardy's
// export/unflatten_call_graph.cc: the first of them decides the shardings inside of all.
#pragma once

#include <string>
#include <vector>

#include "service/propagation/graph/graph.h"

namespace meshd::propagation {

/// What a called function takes and gives: its name, the shardings of its arguments and of the values that it returns,
/// with what is open. Frames with equal text are copies of one function.
std::string signature_of(const Graph& graph, int frame_node);

/// Gives the tensors inside of every frame the shardings of the first frame with its signature. First is what Shardy
/// meets first: calls in @main, then those in called functions, of which callees come before their callers.
void unify_copies(Graph& graph);

}  // namespace meshd::propagation
