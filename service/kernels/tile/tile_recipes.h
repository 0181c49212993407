// Functions that generated code computes by itself: the recipes of float_recipes.h and constant_division.h as steps.
// Private to this folder.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <vector>

#include "service/kernels/tile/tile_program.h"
#include "service/kernels/tile/tile_steps.h"

namespace meshd::kernels {

/// A tile program in which every recipe is a run of steps of its own: `program` has their registers and constants
/// behind the given one's, and an instruction for each of `steps`.
struct ExpandedProgram {
  TileProgram program;
  std::vector<TileStep> steps;
  bool is_deep = false;  ///< has the steps of a function: a long row, each of which waits for the one before
};

/// Any thread. Example: y = exp(x) * 2 has two instructions and 23 steps.
ExpandedProgram expand_recipes(const TileProgram& program, CpuLevel level);

/// The machine of float_recipes.h whose values are registers: each operation adds a step.
class StepMachine {
 public:
  using Value = uint16_t;
  using Element = float;
  static constexpr bool kHasFma = true;

  explicit StepMachine(ExpandedProgram& out) : out_(out) {}

  Value copy(Value x) { return step(StepKind::kMove, LaneFamily::kFloat, {x}); }
  Value constant(float x) { return constant_bits(std::bit_cast<uint32_t>(x)); }
  Value add(Value a, Value b) { return step(StepKind::kAdd, LaneFamily::kFloat, {a, b}); }
  Value subtract(Value a, Value b) { return step(StepKind::kSubtract, LaneFamily::kFloat, {a, b}); }
  Value multiply(Value a, Value b) { return step(StepKind::kMultiply, LaneFamily::kFloat, {a, b}); }
  Value divide(Value a, Value b) { return step(StepKind::kDivide, LaneFamily::kFloat, {a, b}); }
  Value multiply_add(Value a, Value b, Value c) { return step(StepKind::kMultiplyAdd, LaneFamily::kFloat, {a, b, c}); }
  Value negate_multiply_add(Value a, Value b, Value c) {
    return step(StepKind::kNegateMultiplyAdd, LaneFamily::kFloat, {a, b, c});
  }
  Value at_least(Value x, Value low) { return step(StepKind::kAtLeast, LaneFamily::kFloat, {x, low}); }
  Value at_most(Value x, Value high) { return step(StepKind::kAtMost, LaneFamily::kFloat, {x, high}); }
  Value magnitude(Value x) { return step(StepKind::kAbs, LaneFamily::kFloat, {x}); }
  Value negative_magnitude(Value x) { return step(StepKind::kOr, LaneFamily::kFloat, {x, constant(-0.0F)}); }
  Value with_sign_of(Value magnitude, Value x) {
    const Value sign = step(StepKind::kAnd, LaneFamily::kFloat, {x, constant(-0.0F)});
    return step(StepKind::kOr, LaneFamily::kFloat, {magnitude, sign});
  }
  Value choose_negative(Value x, Value if_negative, Value otherwise) {
    return step(StepKind::kChooseNegative, LaneFamily::kFloat, {x, if_negative, otherwise});
  }
  Value add_bits(Value a, Value b) { return step(StepKind::kAdd, LaneFamily::kUnsigned, {a, b}); }
  Value subtract_bits(Value a, Value b) { return step(StepKind::kSubtract, LaneFamily::kUnsigned, {a, b}); }
  Value multiply_bits(Value a, Value b) { return step(StepKind::kMultiply, LaneFamily::kUnsigned, {a, b}); }
  Value multiply_high(LaneFamily family, Value a, uint32_t b) {
    return step(StepKind::kMultiplyHigh, family, {a, constant_bits(b)});
  }
  Value shift_bits_left(Value a, int by) { return shift(StepKind::kShiftLeft, a, by); }
  Value shift_bits_right(Value a, int by) { return shift(StepKind::kShiftRightLogical, a, by); }
  Value shift_number_right(Value a, int by) { return shift(StepKind::kShiftRightArithmetic, a, by); }

 private:
  Value shift(StepKind kind, Value a, int by) {
    return step(kind, LaneFamily::kUnsigned, {a, constant_bits(static_cast<uint32_t>(by))});
  }
  Value constant_bits(uint32_t bits);
  Value step(StepKind kind, LaneFamily family, std::initializer_list<Value> operands);

  ExpandedProgram& out_;
  std::map<uint32_t, Value> constants_;
};

}  // namespace meshd::kernels
