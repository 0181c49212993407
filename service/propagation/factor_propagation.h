// One op, once: which axes of its tensors go to which others. The two inner strategies of Shardy: basic (what a
// factor's tensors agree on) and aggressive (where factors compete for an axis, the better one takes it, tensor by
// tensor).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "service/propagation/projection.h"

namespace meshd::propagation {

/// Bits: 1 forward (operands to results), 2 backward. Union and intersection are bit operations.
enum class Direction : uint8_t { kNone = 0, kForward = 1, kBackward = 2, kBoth = 3 };

constexpr Direction operator|(Direction a, Direction b) {
  return static_cast<Direction>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr Direction operator&(Direction a, Direction b) {
  return static_cast<Direction>(static_cast<uint8_t>(a) & static_cast<uint8_t>(b));
}

/// Which tensors of a projection grew.
struct Grown {
  std::vector<bool> operands;
  std::vector<bool> results;
};

/// Grows the projection's tensors. `directions` has one entry for each factor; `is_elementwise` ops order their factors
/// otherwise and never let an axis pass sideways between operands when the result does not take it.
Grown grow(Projection& projection, const sharding::FactorRule& rule, const std::vector<Direction>& directions,
           bool is_elementwise, const mesh::Mesh& mesh);

}  // namespace meshd::propagation
