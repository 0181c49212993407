// Batching of products and LAPACK calls. Private to linalg.
#pragma once

#include "service/ops/rewrites/batching.h"

namespace meshd::ops {

/// A product of two batches has one more batch dimension; where one side is batched, its batch is a free dimension, as
/// jax.vmap has it.
Batched batch_dot_general(const Batching& b);
/// Leading dimensions are batch dimensions; layouts are those of one more.
Batched batch_lapack_call(const Batching& b);

}  // namespace meshd::ops
