#include "service/kernels/tile/tile_recipes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string_view>

#include "service/kernels/elementwise/functors/float_recipes.h"

namespace meshd::kernels {
namespace {

/// The machine of float_recipes.h whose values are registers: each operation adds a step.
class StepMachine {
 public:
  using Value = uint16_t;
  static constexpr bool kHasFma = true;

  explicit StepMachine(ExpandedProgram& out) : out_(out) {}

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
  Value shift_bits_left(Value a, int by) { return shift(StepKind::kShiftLeft, a, by); }
  Value shift_bits_right(Value a, int by) { return shift(StepKind::kShiftRightLogical, a, by); }

 private:
  Value shift(StepKind kind, Value a, int by) {
    return step(kind, LaneFamily::kUnsigned, {a, constant_bits(static_cast<uint32_t>(by))});
  }

  Value constant_bits(uint32_t bits) {
    const auto [place, is_new] = constants_.try_emplace(bits);
    if (is_new) {
      std::array<std::byte, 4> element{};
      std::memcpy(element.data(), &bits, element.size());
      place->second = out_.program.constant(tensor::DType::kFloat32, element.data());
    }
    return place->second;
  }

  Value step(StepKind kind, LaneFamily family, std::initializer_list<Value> operands) {
    TileStep made;
    made.kind = kind;
    made.family = family;
    made.operand_count = static_cast<int>(operands.size());
    TileInstruction instruction;
    std::copy(operands.begin(), operands.end(), instruction.operands.begin());
    instruction.result = out_.program.add_register(tensor::DType::kFloat32);
    out_.program.instructions.push_back(instruction);
    out_.steps.push_back(made);
    return instruction.result;
  }

  ExpandedProgram& out_;
  std::map<uint32_t, Value> constants_;
};

}  // namespace

struct Recipe {
  std::string_view op;
  uint16_t (*write)(StepMachine& machine, uint16_t x);
};

namespace {

constexpr std::array kRecipes = {
    Recipe{"exponential", exp_recipe<StepMachine>},
    Recipe{"tanh", tanh_recipe<StepMachine>},
    Recipe{"logistic", logistic_recipe<StepMachine>},
};

}  // namespace

const Recipe* find_recipe(ScalarOp op) {
  const auto* const found =
      std::find_if(kRecipes.begin(), kRecipes.end(), [&](const Recipe& recipe) { return recipe.op == name(op); });
  return found == kRecipes.end() ? nullptr : found;
}

ExpandedProgram expand_recipes(const TileProgram& program, CpuLevel level) {
  const std::vector<TileStep> steps = tile_steps(program, level);
  ExpandedProgram out;
  out.program = program;
  out.program.instructions.clear();
  StepMachine machine(out);
  for (size_t i = 0; i < steps.size(); ++i) {
    const TileInstruction& instruction = program.instructions[i];
    if (steps[i].kind != StepKind::kRecipe) {
      out.program.instructions.push_back(instruction);
      out.steps.push_back(steps[i]);
      continue;
    }
    steps[i].recipe->write(machine, instruction.operands[0]);
    // The last step's result is the function's.
    out.program.instructions.back().result = instruction.result;
    out.steps.back().rounds = steps[i].rounds;
  }
  return out;
}

}  // namespace meshd::kernels
