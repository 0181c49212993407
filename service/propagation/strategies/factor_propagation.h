// Factor propagation through one op: the tensors of each factor take each other's axes. Shardy's two inner strategies,
// basic_factor_propagation.cc (what fits a tensor) and aggressive_factor_propagation.cc (which factor goes first).
//
// Invariant: the axes of a factor only grow (the old list is a prefix of the new one), and an axis serves one factor of
// a tensor.
//
// Steps of grow():
//   1. For each factor, the axes that all tensors with it agree on (axis_list.h), other factors ignored. The side that
//      axes flow from adds to the list, the other side may only object.
//   2. Order the factors: larger source tensor first (the largest that has these axes already); for elementwise ops the
//      more sharded factor; the earlier source; the earlier factor.
//   3. For each tensor, results first, and each factor in this order, truncate the list at the first axis that
//      a. is replicated or unreduced in the tensor;
//      b. is new in a closed dimension or behind overflow, or does not divide what is left of a factor that is not the
//         minor-most of its dimension (a sub-axis that divides is kept);
//      c. overlaps an axis of another factor of the tensor.
//   4. An operand of an elementwise op takes no axes that a result has not taken.
//
// Examples, mesh x=2, y=4:
//   8x16 [{"x"}, {}] . 16x32 [{}, {"y"}] -> 8x32 [{"x"}, {"y"}]
//   8x16 [{"x"}, {}] . 16x32 [{}, {"x"}] -> 8x32 [{}, {"x"}], since the 512 elements of the rhs outrank 128
//   add [{"x"}, {}], [{"y"}, {}] -> [{}, {}];  add [{"x", "y"}, {}], [{"x"}, {}] -> [{"x", "y"}, {}]
//   2x8 [{"y"}, {}] to 16 = factors 2 and 8 -> [{"y":(1)2}], since 4 does not divide 2
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "service/propagation/strategies/projection.h"

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

/// Grows the projection's tensors. `directions` has one entry for each factor. `is_elementwise`: steps 2 and 4 treat
/// elementwise ops differently.
Grown grow(Projection& projection, const sharding::FactorRule& rule, const std::vector<Direction>& directions,
           bool is_elementwise, const mesh::Mesh& mesh);

}  // namespace meshd::propagation
