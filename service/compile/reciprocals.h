// A division by a broadcast tensor becomes a product with the broadcast of its reciprocal: fewer divisions, and the
// bits that XLA gives (its algebraic simplifier does the same). Scalars and integers are left alone.
#pragma once

#include <optional>
#include <vector>

#include "service/ir/program.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::compile {

/// Rewrites @main, regions included. `shardings` by ValueId grows with the new values: a reciprocal lies as its operand
/// does, its broadcast as the one it replaces.
void multiply_by_reciprocals(ir::Module& module, std::vector<std::optional<sharding::TensorSharding>>& shardings);

}  // namespace meshd::compile
