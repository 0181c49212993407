// Shardings at the edge of a manual computation: outside they have manual and free axes, inside free ones only.
#pragma once

#include <vector>

#include "service/propagation/graph/open_sharding.h"

namespace meshd::propagation {

/// Manual axes that `outer` does not mention become replicated.
OpenSharding with_all_manual_axes(OpenSharding outer, const std::vector<int>& manual_axes);
/// What the body sees.
OpenSharding without_manual_axes(OpenSharding outer, const std::vector<int>& manual_axes);
/// The manual axes of `outer` in front, the axes of `inner` behind, open where `inner` is.
OpenSharding with_free_axes(const OpenSharding& outer, const OpenSharding& inner, const std::vector<int>& manual_axes);

}  // namespace meshd::propagation
