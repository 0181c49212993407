// Scalar operations over runs of elements: the vocabulary of fused chains, reducers, comparators and scatter bodies.
// A kernel is a plain loop over `count` elements with no tail path of its own, so results do not depend on how work is
// cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Operand dtypes equal the result's unless said otherwise. Comparisons give bool; kSelect takes (bool, a, b), kClamp
/// (min, x, max); kReal/kImag/kAbs of complex give the part's type; kComplex takes two floats.
enum class ScalarOp : uint8_t {
  // one operand
  kCopy,
  kConvert,
  kBitcast,
  kAbs,
  kNegate,
  kSign,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSqrt,
  kRsqrt,
  kCbrt,
  kSin,
  kCos,
  kTan,
  kTanh,
  kLogistic,
  kFloor,
  kCeil,
  kRoundAfz,
  kRoundEven,
  kNot,
  kPopcnt,
  kClz,
  kIsFinite,
  kReal,
  kImag,
  kConj,
  kErf,
  kErfc,
  kErfInv,
  kLgamma,
  kDigamma,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kBesselI0e,
  kBesselI1e,
  kSquare,
  // two operands
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kPower,
  kAtan2,
  kMaximum,
  kMinimum,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRightArithmetic,
  kShiftRightLogical,
  kComplex,
  kNextAfter,
  kZeta,
  kPolygamma,
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
  // three operands
  kSelect,
  kClamp,
};

/// Number of operands.
int operand_count(ScalarOp op);
/// Whether operands may come in any order and grouping: what reducers are made of, rounding aside.
bool is_associative(ScalarOp op);
/// Name for messages: "add".
std::string_view name(ScalarOp op);

/// operands[i] points to `count` elements of the operand's type, result to `count` of the result's. The result may be
/// the same memory as an operand of the same element size; other overlaps are not allowed.
using ScalarKernel = void (*)(const std::byte* const* operands, std::byte* result, int64_t count);

/// The kernel for an op whose operands have dtype `in` (for kSelect: of the chosen values) and whose result has dtype
/// `out`; null when there is none (the caller answers unsupported_dtype). Pure; any thread.
ScalarKernel find_scalar_kernel(ScalarOp op, tensor::DType in, tensor::DType out);

/// Whether that kernel calls a function for each element, so that an element more costs a call more.
bool is_lane_by_lane(ScalarOp op, tensor::DType in);

/// Result dtype of `op` on operands of dtype `in` (kConvert, kBitcast: not defined here).
tensor::DType result_dtype(ScalarOp op, tensor::DType in);

}  // namespace meshd::kernels
