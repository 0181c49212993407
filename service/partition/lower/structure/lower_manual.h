// Lowers manual computations (jax.shard_map): a change of view at their edges; their bodies are lowered as written.
//
// Invariant: an operand's local type outside is the type of the body's argument on its shard, so that both are views of
// the same bytes.
//
// Example, mesh x=4, y=2, manual axes {x}: operand 8x6 [{x}, {y}] has local type 2x3. Inside, the argument is 2x6, y is
// free and shards its dimension 1: 2x3 again; the value varies over {x, y}, and x is in Scope::manual.
#pragma once

#include <map>
#include <vector>

#include "service/partition/lower/context.h"

namespace meshd::partition {

/// The layouts in which manual computations of @main's body read values, for LoweringContext::manual_operands.
std::map<ir::ValueId, std::vector<ShardLayout>> manual_operands(const LoweringContext& context);
/// Throws invalid_program where the text's local types do not follow from its shardings, unsupported_partition for
/// nested manual computations over meshes whose axes do not line up.
void lower_manual(LoweringContext& context, const ir::Op& op, const Scope& scope);

}  // namespace meshd::partition
