#include "service/kernels/tile/tile_steps.h"

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "service/kernels/elementwise/scalar/vector_functions.h"
#include "service/kernels/tile/tile_recipes.h"

namespace meshd::kernels {
namespace {

using tensor::DType;
using NamedStep = std::pair<std::string_view, StepKind>;

constexpr std::array kFloatSteps = {
    NamedStep{"copy", StepKind::kMove},
    NamedStep{"abs", StepKind::kAbs},
    NamedStep{"negate", StepKind::kNegate},
    NamedStep{"add", StepKind::kAdd},
    NamedStep{"subtract", StepKind::kSubtract},
    NamedStep{"multiply", StepKind::kMultiply},
    NamedStep{"divide", StepKind::kDivide},
    NamedStep{"square", StepKind::kSquare},
    NamedStep{"maximum", StepKind::kMaximum},
    NamedStep{"minimum", StepKind::kMinimum},
    NamedStep{"clamp", StepKind::kClamp},
    NamedStep{"sqrt", StepKind::kSqrt},
    NamedStep{"sign", StepKind::kSign},
    NamedStep{"floor", StepKind::kFloor},
    NamedStep{"ceil", StepKind::kCeil},
    NamedStep{"select", StepKind::kSelect},
    NamedStep{"round_nearest_even", StepKind::kRoundEven},
    NamedStep{"is_finite", StepKind::kIsFinite},
};
constexpr std::array kIntegerSteps = {
    NamedStep{"copy", StepKind::kMove},
    NamedStep{"abs", StepKind::kAbs},
    NamedStep{"negate", StepKind::kNegate},
    NamedStep{"add", StepKind::kAdd},
    NamedStep{"subtract", StepKind::kSubtract},
    NamedStep{"multiply", StepKind::kMultiply},
    NamedStep{"square", StepKind::kSquare},
    NamedStep{"maximum", StepKind::kMaximum},
    NamedStep{"minimum", StepKind::kMinimum},
    NamedStep{"clamp", StepKind::kClamp},
    NamedStep{"select", StepKind::kSelect},
    NamedStep{"and", StepKind::kAnd},
    NamedStep{"or", StepKind::kOr},
    NamedStep{"xor", StepKind::kXor},
    NamedStep{"not", StepKind::kNot},
    NamedStep{"shift_left", StepKind::kShiftLeft},
    NamedStep{"shift_right_logical", StepKind::kShiftRightLogical},
    NamedStep{"shift_right_arithmetic", StepKind::kShiftRightArithmetic},
};
constexpr std::array kBoolSteps = {
    NamedStep{"copy", StepKind::kMove}, NamedStep{"and", StepKind::kAnd}, NamedStep{"or", StepKind::kOr},
    NamedStep{"xor", StepKind::kXor},   NamedStep{"not", StepKind::kNot}, NamedStep{"select", StepKind::kSelect},
};

template <size_t N>
StepKind find_step(const std::array<NamedStep, N>& steps, ScalarOp op) {
  for (const auto& [step_name, kind] : steps) {
    if (step_name == name(op)) return kind;
  }
  return StepKind::kKernel;
}

bool is_float_form(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kBfloat16; }

StepKind convert_step(DType in, DType out, CpuLevel level) {
  if (in == out) return StepKind::kMove;
  if (out == DType::kBool) return StepKind::kIsNotZero;
  if (is_float_form(in)) return is_float_form(out) ? StepKind::kMove : StepKind::kKernel;
  if (!is_float_form(out)) return StepKind::kMove;  // between integers, or of a bool
  // An integer is rounded twice on the way to bfloat16; 0 and 1 are not.
  if (out == DType::kBfloat16 && in != DType::kBool) return StepKind::kKernel;
  return in == DType::kUint32 && level != CpuLevel::kV4 ? StepKind::kKernel : StepKind::kToFloat;
}

/// Of two NaNs a sum or product is the one that comes first in the instruction, and the compiler chose the order of
/// each vector in the interpreter's loop. Asks the loop; false where lanes of one vector differ.
bool find_order(ScalarKernel kernel, DType dtype, CpuLevel level, TileStep& step) {
  const auto bytes = static_cast<size_t>(tensor::size_bytes(dtype));
  constexpr size_t kMostBytes = 4;
  constexpr auto kBlock = static_cast<size_t>(kBlockLanes);
  alignas(64) std::array<std::array<std::byte, kBlock * kMostBytes>, 3> lanes{};
  for (size_t operand = 0; operand < 2; ++operand) {
    // Quiet NaNs of different payloads, also when bfloat16 has the upper half.
    const uint32_t bits = 0x7FC00000U + (static_cast<uint32_t>(operand + 1) << 16);
    repeat_element(reinterpret_cast<const std::byte*>(&bits) + (kMostBytes - bytes), static_cast<int64_t>(bytes),
                   lanes[operand].data(), kBlockLanes);
  }
  const std::array<const std::byte*, 3> operands = {lanes[0].data(), lanes[1].data(), lanes[1].data()};
  kernel(operands.data(), lanes[2].data(), kBlockLanes);
  const size_t vector_lanes = level == CpuLevel::kV4 ? 16 : 8;
  for (size_t lane = 0; lane < kBlock; ++lane) {
    const bool is_second = std::memcmp(&lanes[2][lane * bytes], &lanes[1][lane * bytes], bytes) == 0;
    if (lane % vector_lanes == 0) step.second_first[lane / 8] = is_second;
    if (step.second_first[lane / vector_lanes * vector_lanes / 8] != is_second) return false;
  }
  return true;
}

TileStep step_of(const TileProgram& program, const TileInstruction& instruction, CpuLevel level) {
  TileStep step;
  const ScalarOp op = instruction.op;
  step.operand_count = operand_count(op);
  const DType in = program.registers[instruction.operands[op == ScalarOp::kSelect ? 1 : 0]];
  const DType out = program.registers[instruction.result];
  if (lane_form(in) == LaneForm::kNone || lane_form(out) == LaneForm::kNone) return step;
  if (is_float_form(in))
    step.family = LaneFamily::kFloat;
  else
    step.family = in == DType::kInt32 ? LaneFamily::kSigned : LaneFamily::kUnsigned;
  step.rounds = out == DType::kBfloat16;
  if (op == ScalarOp::kConvert) {
    step.kind = convert_step(in, out, level);
    step.rounds = step.rounds && in == DType::kFloat32;
    return step;
  }
  if (op == ScalarOp::kBitcast) {
    const bool is_word = lane_form(in) == LaneForm::kWord && lane_form(out) == LaneForm::kWord;
    step.kind = is_word ? StepKind::kMove : StepKind::kKernel;
    return step;
  }
  if (op >= ScalarOp::kCompareEq && op <= ScalarOp::kCompareGe) {
    step.kind = StepKind::kCompare;
    step.comparison = op;
    return step;
  }
  if (step.family == LaneFamily::kFloat) {
    step.kind = find_step(kFloatSteps, op);
    if (step.kind == StepKind::kKernel) {
      step.function = vector_function(op, level);
      if (step.function != nullptr) step.kind = StepKind::kFunction;
      // Only where loops are compiled to the same: others may choose another one of several NaNs.
      if (step.function != nullptr) step.recipe = find_recipe(op);
      if (step.recipe != nullptr) step.kind = StepKind::kRecipe;
    }
    if (step.kind == StepKind::kMove || step.kind == StepKind::kSelect) step.rounds = false;
    if ((step.kind == StepKind::kAdd || step.kind == StepKind::kMultiply) &&
        !find_order(instruction.kernel, in, level, step)) {
      step.kind = StepKind::kKernel;
    }
    return step;
  }
  step.kind = in == DType::kBool ? find_step(kBoolSteps, op) : find_step(kIntegerSteps, op);
  if (step.kind == StepKind::kAbs && step.family == LaneFamily::kUnsigned) step.kind = StepKind::kMove;
  return step;
}

}  // namespace

LaneForm lane_form(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUint32:
      return LaneForm::kWord;
    case DType::kBool:
      return LaneForm::kByte;
    case DType::kBfloat16:
      return LaneForm::kHalf;
    default:
      return LaneForm::kNone;
  }
}

std::vector<TileStep> tile_steps(const TileProgram& program, CpuLevel level) {
  std::vector<TileStep> steps;
  steps.reserve(program.instructions.size());
  for (const TileInstruction& instruction : program.instructions) steps.push_back(step_of(program, instruction, level));
  return steps;
}

}  // namespace meshd::kernels
