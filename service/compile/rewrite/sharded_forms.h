// Decomposes ops whose kernels need a sharded dimension replicated into ops that can be sharded.
#pragma once

#include <optional>
#include <vector>

#include "service/ir/program.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::compile {

/// Replaces ops of @main, regions included, whose row has another form for a sharded operand 0 (ops::ShardedForm) where
/// a dimension beside the free one is sharded. `shardings` by ValueId grows with the new values. Example: on a mesh
/// x=2, batch_norm_training of 8x3 with feature_index 1, sharded [{x}, {}], becomes reduces of 8x3 over dim 0, whose
/// partial sums are added over x; sharded [{}, {x}] it stays.
void write_sharded_forms(ir::Module& module, std::vector<std::optional<sharding::TensorSharding>>& shardings);

}  // namespace meshd::compile
