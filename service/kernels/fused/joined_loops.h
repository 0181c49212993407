// Loops over one iteration space as one.
#pragma once

#include <optional>

#include "service/kernels/fused/fused_loop.h"

namespace meshd::kernels {

/// The loop that has the outputs of `first` and then those of `second`: what both read is read once, and what both
/// compute is computed once. Both are pointwise, without places, and have the same operands. Nothing where their spaces
/// differ, where they read nothing in common (unless they may), or where the loop would have more inputs or
/// instructions than one has.
std::optional<FusedLoop> join_loops(const FusedLoop& first, const FusedLoop& second, bool may_read_others = false);

}  // namespace meshd::kernels
