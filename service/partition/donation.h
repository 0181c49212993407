// Donation: matches donated arguments with results whose buffers alias them, in JAX's order
// (jax/_src/interpreters/mlir.py, _set_up_aliases).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/partition/local_program.h"

namespace meshd::partition {

/// Sets LocalParameter::is_donated and aliases of the arguments, and adds one warning naming dtype[shape] of each
/// donated argument that no result can use. `donate`: token-free positions that the caller gives up; nothing: the
/// attributes of the module decide.
void plan_donation(LocalProgram& program, const ir::Function& main, const std::optional<std::vector<int64_t>>& donate);

}  // namespace meshd::partition
