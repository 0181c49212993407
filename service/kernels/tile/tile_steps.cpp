#include "service/kernels/tile/tile_steps.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "service/kernels/elementwise/functors/float_recipes.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/elementwise/scalar/vector_functions.h"
#include "service/kernels/tile/tile_recipes.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

/// What an operation is on the element types that code is generated for.
struct OpSteps {
  std::string_view op = {};
  StepKind floats = StepKind::kKernel;
  StepKind integers = StepKind::kKernel;
  StepKind bools = StepKind::kKernel;
  RecipeFn recipe = nullptr;  ///< of floats
};
constexpr std::array kSteps = {
    OpSteps{.op = "copy", .floats = StepKind::kMove, .integers = StepKind::kMove, .bools = StepKind::kMove},
    OpSteps{.op = "abs", .floats = StepKind::kAbs, .integers = StepKind::kAbs},
    OpSteps{.op = "negate", .floats = StepKind::kNegate, .integers = StepKind::kNegate},
    OpSteps{.op = "add", .floats = StepKind::kAdd, .integers = StepKind::kAdd},
    OpSteps{.op = "subtract", .floats = StepKind::kSubtract, .integers = StepKind::kSubtract},
    OpSteps{.op = "multiply", .floats = StepKind::kMultiply, .integers = StepKind::kMultiply},
    OpSteps{.op = "divide", .floats = StepKind::kDivide},
    OpSteps{.op = "square", .floats = StepKind::kSquare, .integers = StepKind::kSquare},
    OpSteps{.op = "maximum", .floats = StepKind::kMaximum, .integers = StepKind::kMaximum},
    OpSteps{.op = "minimum", .floats = StepKind::kMinimum, .integers = StepKind::kMinimum},
    OpSteps{.op = "clamp", .floats = StepKind::kClamp, .integers = StepKind::kClamp},
    OpSteps{.op = "sqrt", .floats = StepKind::kSqrt},
    OpSteps{.op = "sign", .floats = StepKind::kSign, .integers = StepKind::kSign},
    OpSteps{.op = "floor", .floats = StepKind::kFloor},
    OpSteps{.op = "ceil", .floats = StepKind::kCeil},
    OpSteps{.op = "select", .floats = StepKind::kSelect, .integers = StepKind::kSelect, .bools = StepKind::kSelect},
    OpSteps{.op = "round_nearest_even", .floats = StepKind::kRoundEven},
    OpSteps{.op = "is_finite", .floats = StepKind::kIsFinite},
    OpSteps{.op = "and", .integers = StepKind::kAnd, .bools = StepKind::kAnd},
    OpSteps{.op = "or", .integers = StepKind::kOr, .bools = StepKind::kOr},
    OpSteps{.op = "xor", .integers = StepKind::kXor, .bools = StepKind::kXor},
    OpSteps{.op = "not", .integers = StepKind::kNot, .bools = StepKind::kNot},
    OpSteps{.op = "shift_left", .integers = StepKind::kShiftLeft},
    OpSteps{.op = "shift_right_logical", .integers = StepKind::kShiftRightLogical},
    OpSteps{.op = "shift_right_arithmetic", .integers = StepKind::kShiftRightArithmetic},
    OpSteps{.op = "exponential", .recipe = exp_recipe<StepMachine>},
    OpSteps{.op = "tanh", .recipe = tanh_recipe<StepMachine>},
    OpSteps{.op = "erf", .recipe = erf_recipe<StepMachine>},
    OpSteps{.op = "logistic",
            .recipe = [](StepMachine& m,
                         uint16_t x) { return logistic_recipe(m, x, exp_recipe(m, m.negative_magnitude(x))); }},
};

OpSteps find_steps(ScalarOp op) {
  const auto* const found =
      std::find_if(kSteps.begin(), kSteps.end(), [&](const OpSteps& row) { return row.op == name(op); });
  return found == kSteps.end() ? OpSteps{} : *found;
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

/// Whether a register is a constant of 32 bits, not all of them 0.
bool is_divisor(const TileProgram& program, uint16_t reg) {
  const auto found = std::find_if(program.constants.begin(), program.constants.end(),
                                  [&](const TileConstant& constant) { return constant.reg == reg; });
  uint32_t bits = 0;
  if (found != program.constants.end()) std::memcpy(&bits, found->element.data(), sizeof bits);
  return bits != 0;
}

TileStep step_of(const TileProgram& program, const TileInstruction& instruction, CpuLevel level) {
  TileStep step;
  if (instruction.permute >= 0) {
    step.kind = StepKind::kPermute;
    step.operand_count = program.permutes[static_cast<size_t>(instruction.permute)].is_whole() ? 1 : 2;
    return step;
  }
  if (instruction.fold >= 0) {
    step.kind = StepKind::kFold;
    step.operand_count = 2;
    return step;
  }
  if (instruction.row >= 0) {
    const TileRow& row = program.rows[static_cast<size_t>(instruction.row)];
    step.kind = row.writes ? StepKind::kWriteRow : StepKind::kReadRow;
    step.operand_count = static_cast<int>(row.indices.size()) + (row.writes ? 1 : 0);
    return step;
  }
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
  const OpSteps steps = find_steps(op);
  if (step.family == LaneFamily::kFloat) {
    step.kind = steps.floats;
    // A recipe only where loops are compiled to the same: others may choose another one of several NaNs.
    if (step.kind == StepKind::kKernel) step.function = vector_function(op, level);
    if (step.function != nullptr) {
      step.recipe = steps.recipe;
      step.kind = step.recipe == nullptr ? StepKind::kFunction : StepKind::kRecipe;
    }
    if (step.kind == StepKind::kMove || step.kind == StepKind::kSelect) step.rounds = false;
    if ((step.kind == StepKind::kAdd || step.kind == StepKind::kMultiply) &&
        !find_order(instruction.kernel, in, level, step)) {
      step.kind = StepKind::kKernel;
    }
    return step;
  }
  step.kind = in == DType::kBool ? steps.bools : steps.integers;
  if ((op == ScalarOp::kDivide || op == ScalarOp::kRemainder) && is_divisor(program, instruction.operands[1]))
    step.kind = op == ScalarOp::kDivide ? StepKind::kQuotient : StepKind::kRemainder;
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
