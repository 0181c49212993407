// The few facts about ops, besides their rules, that decide when and in which direction Shardy propagates through them.
#pragma once

#include "service/propagation/graph.h"

namespace meshd::propagation {

/// Every result element comes from the operands' elements at the same place.
bool is_elementwise(const Node& node);

enum class Flow : uint8_t {
  kOther,
  kPassThrough,         ///< elementwise ops, reshape, transpose, edges, moves between memories
  kPassThroughForward,  ///< dynamic_slice, dynamic_update_slice
  kBroadcast,
};
Flow flow_of(const Node& node);

/// A constant without operands: dense values or an iota.
bool is_constant(const Node& node);
/// Constant when its operands are (and it is no constant itself): pointwise ops, broadcast, reshape, slice.
bool keeps_constants(const Node& node);
bool is_broadcast(const Node& node);

}  // namespace meshd::propagation
