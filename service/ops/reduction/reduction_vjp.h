// Reverse-mode derivatives of reductions, windows, sorts and batch normalisation. Private to reduction and linalg.
#pragma once

#include "service/ops/rewrites/derivative.h"

namespace meshd::ops {

/// Of reductions by add, maximum, minimum or multiply; others are refused. Equal maxima share the cotangent.
Contributions vjp_reduce(const Vjp& v);
/// Of windows that are added, and of maxima and minima of windows without dilation, whose cotangent goes to the first
/// of equal elements.
Contributions vjp_reduce_window(const Vjp& v);
/// Of the source, where the second body adds: each window's element takes the cotangent from the place that it went to.
Contributions vjp_select_and_scatter(const Vjp& v);
/// The sort is made once more with the elements' places, by which cotangents are then sorted back.
Contributions vjp_sort(const Vjp& v);
Contributions vjp_top_k(const Vjp& v);
/// The call is made once more with the elements' places.
Contributions vjp_approx_top_k(const Vjp& v);
Contributions vjp_batch_norm_training(const Vjp& v);
Contributions vjp_batch_norm_inference(const Vjp& v);

}  // namespace meshd::ops
