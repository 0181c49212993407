// Batching of a program by rewriting: jax.vmap over StableHLO.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/ir/program.h"

namespace meshd::program {

/// The program that does for `size` entries of a batch what `flat` does for one. `batched` has an entry for each
/// argument of @main: those marked have the batch as a dimension in front, and so have all results. `flat` is inlined
/// and specialised to static shapes. Ops are rewritten by their rows (ops::OpDef::batch); what is the same for all
/// entries is computed once. A branch on a condition of its own for each entry computes all branches and selects; a
/// loop runs while the condition of any entry holds, and entries whose condition does not hold stay as they are.
///
/// Nothing where an op has no rule, an effect, or gives random numbers, or where loops within loops would be rewritten
/// too often.
///
/// Example: f(x: tensor<3xf32>, w: tensor<3xf32>) = sum(x * w), x batched, size 8
///   -> g(x: tensor<8x3xf32>, w: tensor<3xf32>): %0 = w repeated to 8x3; %1 = x * %0; return sum of %1 over dimension 1
std::optional<ir::Module> batched(const ir::Module& flat, const std::vector<bool>& batched, int64_t size);

}  // namespace meshd::program
