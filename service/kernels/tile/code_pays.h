// When machine code is made of a tile program: apart from tile_program.h, so that the planner need not know programs.
#pragma once

#include <cstdint>

namespace meshd::kernels {

/// Lanes after which machine code has paid for its making, for loops of some instructions (docs/decisions).
inline constexpr int64_t kCodePays = int64_t{256} * 1024;

}  // namespace meshd::kernels
