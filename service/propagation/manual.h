// Placements at the border of a manual computation: outside they have manual axes and free ones, inside free ones only.
#pragma once

#include <vector>

#include "service/propagation/placement.h"

namespace meshd::propagation {

/// Manual axes that `outer` does not mention become replicated.
Placement with_all_manual_axes(Placement outer, const std::vector<int>& manual_axes);
/// What the body sees.
Placement without_manual_axes(Placement outer, const std::vector<int>& manual_axes);
/// The manual axes of `outer` in front, the axes of `inner` behind, open where `inner` is.
Placement with_free_axes(const Placement& outer, const Placement& inner, const std::vector<int>& manual_axes);

}  // namespace meshd::propagation
