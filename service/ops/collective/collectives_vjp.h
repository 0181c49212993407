// Reverse-mode derivatives of collectives inside manual computations. Every device's value counts as one of its own:
// the rules transpose the linear map from the operands of all members of a group to the results of all of them. What is
// replicated by construction needs no rule here: the edges of a manual computation share out and sum up cotangents
// (service/program/gradient).
//
// Example: all_reduce by add in groups of 2. Results are y0 = y1 = x0 + x1, so that the cotangent of x0 is that of y0
// plus that of y1: an all_reduce of the cotangents.
#pragma once

#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {

/// By add: an all_reduce. By maximum and minimum: equal extremes share the cotangent. Other bodies are refused.
Contributions vjp_all_reduce(const Vjp& v);
/// A reduce_scatter.
Contributions vjp_all_gather(const Vjp& v);
/// By add: an all_gather. Other bodies are refused.
Contributions vjp_reduce_scatter(const Vjp& v);
/// An all_to_all back.
Contributions vjp_all_to_all(const Vjp& v);
/// A collective_permute from targets to sources.
Contributions vjp_collective_permute(const Vjp& v);

}  // namespace meshd::ops
