// When and in which direction Shardy propagates through a node: the facts of its row (ops::PropagationFacts), or of its
// kind.
#pragma once

#include "service/propagation/graph/graph.h"

namespace meshd::propagation {

/// Every result element comes from the operands' elements at the same place.
bool is_elementwise(const Node& node);

/// In which of Shardy's steps and directions it takes part.
ops::Flow flow_of(const Node& node);

/// A constant without operands: dense values or an iota.
bool is_constant(const Node& node);
/// Constant when its operands are (and it is no constant itself): pointwise ops, broadcast, reshape, slice.
bool keeps_constants(const Node& node);
bool is_broadcast(const Node& node);

}  // namespace meshd::propagation
