// Batch normalisation whose batches are cut becomes sums over shards: its mean and variance need all elements of a
// feature, but only their sums. In 64 bits, as the kernel of the whole computes.
#pragma once

#include <optional>
#include <vector>

#include "service/ir/program.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::compile {

/// Rewrites batch_norm_training and batch_norm_grad of @main, regions included, where a dimension beside the features
/// is cut. `shardings` by ValueId grows with the new values.
void spread_batch_norms(ir::Module& module, std::vector<std::optional<sharding::TensorSharding>>& shardings);

}  // namespace meshd::compile
