// Scalar operations over runs of elements: the instructions of fused loops, reducers, comparators and scatter bodies. A
// kernel is a plain loop over `count` elements with no tail path of its own, so results do not depend on how work is
// split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// A row of the table of scalar operations (scalar_table.h). Those that C++ code composes or matches have a name here;
/// all are found by scalar_op(). Operand dtypes equal the result's unless noted. Comparisons give bool; kSelect takes
/// (bool, a, b), kClamp (min, x, max); kReal/kImag/kAbs of complex give the part's type; kComplex takes two floats.
enum class ScalarOp : uint8_t {
  kCopy,
  kConvert,
  kBitcast,
  kAbs,
  kNegate,
  kExp,
  kFloor,
  kReal,
  kImag,
  kConj,
  kLgamma,
  kDigamma,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kPower,
  kMaximum,
  kMinimum,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRightLogical,
  kComplex,
  kNextAfter,
  kCompareEq,
  kCompareNe,
  kCompareLt,
  kCompareLe,
  kCompareGt,
  kCompareGe,
  kTotalEq,
  kTotalNe,
  kTotalLt,
  kTotalLe,
  kTotalGt,
  kTotalGe,
  kSelect,
  kClamp,
};
/// No row has this number.
inline constexpr ScalarOp kUnnamed{255};

/// The operation of this name, such as "cbrt"; throws internal where there is none. For rows, which are made once.
ScalarOp scalar_op(std::string_view name);

/// How many there are: their numbers begin at 0.
size_t scalar_op_count();

/// e with op(e, x) == x for all x.
enum class Identity : uint8_t {
  kNone,     ///< there is none, or the operation is not associative
  kSum,      ///< 0; of floats -0, for 0 would make -0 + 0 a 0
  kZero,     ///< all bits 0; integers and bool only
  kOnes,     ///< all bits 1; integers and bool only
  kOne,      ///< 1
  kLowest,   ///< -infinity, the lowest integer
  kHighest,  ///< infinity, the highest integer
};
Identity identity_of(ScalarOp op);
/// op(x, x) == x: a start value may come in any number of times.
bool is_idempotent(ScalarOp op);
/// Work of one lane, in additions: what the planner's estimates need.
double cost_of(ScalarOp op);

/// Number of operands.
int operand_count(ScalarOp op);
/// Whether operands may be reordered and regrouped, as reducers require; rounding ignored.
bool is_associative(ScalarOp op);
/// Name for messages: "add".
std::string_view name(ScalarOp op);

/// operands[i] points to `count` elements of the operand's type, result to `count` of the result's. The result may be
/// the same memory as an operand of the same element size; other overlaps are not allowed.
using ScalarKernel = void (*)(const std::byte* const* operands, std::byte* result, int64_t count);

/// The kernel for an op whose operands have dtype `in` (for kSelect: of the chosen values) and whose result has dtype
/// `out`; null when there is none (the caller throws unsupported_dtype). Pure; any thread.
ScalarKernel find_scalar_kernel(ScalarOp op, tensor::DType in, tensor::DType out);

/// Whether that kernel calls a function for each element, so that an element more costs a call more.
bool is_lane_by_lane(ScalarOp op, tensor::DType in);

/// Result dtype of `op` on operands of dtype `in` (kConvert, kBitcast: not defined here).
tensor::DType result_dtype(ScalarOp op, tensor::DType in);

}  // namespace meshd::kernels
