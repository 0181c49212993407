// Writes the propagated graph back as a module.
//
// Invariant: every value of the module has the sharding of its tensor's holder, and the op order is the graph's.
//
// Steps, for each node in order:
//   1. An edge is its operand; groups and terminators of frames are dropped.
//   2. A copy of a constant is dropped where the block has an equal copy with the same shardings; its users read that.
//   3. A constraint gets the sharding that propagation found; one that import added becomes an sdy.reshard.
//   4. A frame becomes the ops of its body. An argument or result whose sharding differs inside passes an sdy.reshard.
//   5. A manual computation gets complete in_shardings and out_shardings. Any other op is copied.
//
// Example, mesh x=2, y=4: one constant 8x16, added to [{"x"}, {}] and multiplied with [{}, {"y"}]
//   -> two constants, [{"x"}, {}] and [{}, {"y"}]; where both uses have [{"x"}, {}], one.
#pragma once

#include "service/propagation/graph/graph.h"
#include "service/propagation/propagate.h"

namespace meshd::propagation {

/// The module of the graph, with a sharding for every value.
Propagated emit(const Graph& graph);

}  // namespace meshd::propagation
