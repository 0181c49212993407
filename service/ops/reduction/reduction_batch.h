// Batching of reductions, windows and sorts. Private to reduction.
#pragma once

#include "service/ops/rewrites/batching.h"

namespace meshd::ops {

/// Of initial values that are the same for the whole batch.
Batched batch_reduce(const Batching& b);
Batched batch_reduce_window(const Batching& b);
Batched batch_select_and_scatter(const Batching& b);
Batched batch_sort(const Batching& b);

}  // namespace meshd::ops
