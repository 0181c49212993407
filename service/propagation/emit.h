// The graph as a program again.
#pragma once

#include "service/propagation/graph.h"
#include "service/propagation/propagate.h"

namespace meshd::propagation {

/// The program that the graph stands for, with a sharding for every value. Copies of one constant that came to the same
/// shardings are one again; edges and groups are gone.
Propagated emit(const Graph& graph);

}  // namespace meshd::propagation
