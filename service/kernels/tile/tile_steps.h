// What generated code does for each instruction of a tile program. Private to kernels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// How a register's lanes are held in vector registers: each in 32 bits, whatever it takes in memory.
enum class LaneForm : uint8_t {
  kNone,  ///< only in memory
  kWord,  ///< float32, int32, uint32: as they are
  kByte,  ///< bool: a number of 8 bits, the rest is 0
  kHalf,  ///< bfloat16: as float32, exactly
};
LaneForm lane_form(tensor::DType dtype);

/// An instruction of generated code, by the type of its operands.
enum class StepKind : uint8_t {
  kKernel,     ///< none: the interpreter's kernel is called on a block of lanes in memory
  kFunction,   ///< a vector function of one or two operands
  kRecipe,     ///< of one operand; becomes a run of the other steps (tile_recipes.h)
  kQuotient,   ///< of an integer and a constant that is not 0; becomes such a run too
  kRemainder,  ///< the remainder of that division, likewise
  kMove,
  kSelect,
  kToFloat,  ///< of an integer
  kIsNotZero,
  kAbs,
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kSquare,
  kMaximum,
  kMinimum,
  kClamp,
  kSqrt,
  kSign,
  kFloor,
  kCeil,
  kRoundEven,
  kIsFinite,
  kCompare,
  kAnd,
  kOr,
  kXor,
  kNot,
  kShiftLeft,
  kShiftRightLogical,
  kShiftRightArithmetic,
  // Of runs alone, by the names of their machines (float_recipes.h, constant_division.h).
  kMultiplyAdd,
  kNegateMultiplyAdd,
  kAtLeast,
  kAtMost,
  kChooseNegative,
  kMultiplyHigh,  ///< of an integer and a constant
  // Of programs of one block.
  kPermute,
  kFold,
  kReadRow,
  kWriteRow,
};

/// Writes a function of float_recipes.h on the machine of tile_recipes.h; gives the register of the result.
class StepMachine;
using RecipeFn = uint16_t (*)(StepMachine& machine, uint16_t x);

enum class LaneFamily : uint8_t { kFloat, kSigned, kUnsigned };

struct TileStep {
  StepKind kind = StepKind::kKernel;
  LaneFamily family = LaneFamily::kFloat;
  RecipeFn recipe = nullptr;  ///< of kRecipe
  int operand_count = 0;
  ScalarOp comparison = ScalarOp::kCompareEq;  ///< kCompare: kCompareEq to kCompareGe
  const void* function = nullptr;
  bool rounds = false;  ///< the result is rounded to bfloat16
  /// Sums and products, by vector of 8 lanes of a block: the second operand comes first.
  std::array<bool, kBlockLanes / 8> second_first{};
};

/// By instruction. Every instruction has a kernel.
std::vector<TileStep> tile_steps(const TileProgram& program, CpuLevel level);

}  // namespace meshd::kernels
