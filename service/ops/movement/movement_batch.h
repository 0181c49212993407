// Batching of movement, gathers and scatters. Private to movement.
#pragma once

#include "service/ops/rewrites/batching.h"

namespace meshd::ops {

Batched batch_transpose(const Batching& b);
Batched batch_broadcast_in_dim(const Batching& b);
Batched batch_slice(const Batching& b);
/// Of a padding value that is the same for the whole batch.
Batched batch_pad(const Batching& b);
Batched batch_concatenate(const Batching& b);
Batched batch_reverse(const Batching& b);
/// With a start of its own for each entry of the batch: a gather.
Batched batch_dynamic_slice(const Batching& b);
/// With a start of its own for each entry of the batch: a scatter, whose starts are clamped first.
Batched batch_dynamic_update_slice(const Batching& b);
Batched batch_gather(const Batching& b);
Batched batch_scatter(const Batching& b);

}  // namespace meshd::ops
