#include "service/kernels/elementwise/scalar_op.h"

#include <array>
#include <cstring>

#include "service/kernels/elementwise/lane_loop.h"
#include "service/kernels/elementwise/narrow_lanes.h"
#include "service/kernels/elementwise/scalar_tables.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

struct ScalarOpRow {
  ScalarOp op;
  std::string_view name;
  int operands;
};

constexpr auto kRows = std::to_array<ScalarOpRow>({
    {ScalarOp::kCopy, "copy", 1},
    {ScalarOp::kConvert, "convert", 1},
    {ScalarOp::kBitcast, "bitcast_convert", 1},
    {ScalarOp::kAbs, "abs", 1},
    {ScalarOp::kNegate, "negate", 1},
    {ScalarOp::kSign, "sign", 1},
    {ScalarOp::kExp, "exponential", 1},
    {ScalarOp::kExpm1, "exponential_minus_one", 1},
    {ScalarOp::kLog, "log", 1},
    {ScalarOp::kLog1p, "log_plus_one", 1},
    {ScalarOp::kSqrt, "sqrt", 1},
    {ScalarOp::kRsqrt, "rsqrt", 1},
    {ScalarOp::kCbrt, "cbrt", 1},
    {ScalarOp::kSin, "sine", 1},
    {ScalarOp::kCos, "cosine", 1},
    {ScalarOp::kTan, "tan", 1},
    {ScalarOp::kTanh, "tanh", 1},
    {ScalarOp::kLogistic, "logistic", 1},
    {ScalarOp::kFloor, "floor", 1},
    {ScalarOp::kCeil, "ceil", 1},
    {ScalarOp::kRoundAfz, "round_nearest_afz", 1},
    {ScalarOp::kRoundEven, "round_nearest_even", 1},
    {ScalarOp::kNot, "not", 1},
    {ScalarOp::kPopcnt, "popcnt", 1},
    {ScalarOp::kClz, "count_leading_zeros", 1},
    {ScalarOp::kIsFinite, "is_finite", 1},
    {ScalarOp::kReal, "real", 1},
    {ScalarOp::kImag, "imag", 1},
    {ScalarOp::kConj, "conj", 1},
    {ScalarOp::kErf, "erf", 1},
    {ScalarOp::kErfc, "erfc", 1},
    {ScalarOp::kErfInv, "erf_inv", 1},
    {ScalarOp::kLgamma, "lgamma", 1},
    {ScalarOp::kDigamma, "digamma", 1},
    {ScalarOp::kAsin, "asin", 1},
    {ScalarOp::kAcos, "acos", 1},
    {ScalarOp::kAtan, "atan", 1},
    {ScalarOp::kSinh, "sinh", 1},
    {ScalarOp::kCosh, "cosh", 1},
    {ScalarOp::kAsinh, "asinh", 1},
    {ScalarOp::kAcosh, "acosh", 1},
    {ScalarOp::kAtanh, "atanh", 1},
    {ScalarOp::kBesselI0e, "bessel_i0e", 1},
    {ScalarOp::kBesselI1e, "bessel_i1e", 1},
    {ScalarOp::kSquare, "square", 1},
    {ScalarOp::kAdd, "add", 2},
    {ScalarOp::kSubtract, "subtract", 2},
    {ScalarOp::kMultiply, "multiply", 2},
    {ScalarOp::kDivide, "divide", 2},
    {ScalarOp::kRemainder, "remainder", 2},
    {ScalarOp::kPower, "power", 2},
    {ScalarOp::kAtan2, "atan2", 2},
    {ScalarOp::kMaximum, "maximum", 2},
    {ScalarOp::kMinimum, "minimum", 2},
    {ScalarOp::kAnd, "and", 2},
    {ScalarOp::kOr, "or", 2},
    {ScalarOp::kXor, "xor", 2},
    {ScalarOp::kShiftLeft, "shift_left", 2},
    {ScalarOp::kShiftRightArithmetic, "shift_right_arithmetic", 2},
    {ScalarOp::kShiftRightLogical, "shift_right_logical", 2},
    {ScalarOp::kComplex, "complex", 2},
    {ScalarOp::kNextAfter, "next_after", 2},
    {ScalarOp::kZeta, "zeta", 2},
    {ScalarOp::kPolygamma, "polygamma", 2},
    {ScalarOp::kCompareEq, "compare EQ", 2},
    {ScalarOp::kCompareNe, "compare NE", 2},
    {ScalarOp::kCompareLt, "compare LT", 2},
    {ScalarOp::kCompareLe, "compare LE", 2},
    {ScalarOp::kCompareGt, "compare GT", 2},
    {ScalarOp::kCompareGe, "compare GE", 2},
    {ScalarOp::kTotalEq, "compare EQ TOTALORDER", 2},
    {ScalarOp::kTotalNe, "compare NE TOTALORDER", 2},
    {ScalarOp::kTotalLt, "compare LT TOTALORDER", 2},
    {ScalarOp::kTotalLe, "compare LE TOTALORDER", 2},
    {ScalarOp::kTotalGt, "compare GT TOTALORDER", 2},
    {ScalarOp::kTotalGe, "compare GE TOTALORDER", 2},
    {ScalarOp::kSelect, "select", 3},
    {ScalarOp::kClamp, "clamp", 3},
});

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].op) != i) return false;
  }
  return kRows.size() == static_cast<size_t>(ScalarOp::kClamp) + 1;
}
static_assert(rows_are_in_order());

constexpr const ScalarOpRow& row_of(ScalarOp op) { return kRows[static_cast<size_t>(op)]; }

template <size_t Bytes>
void copy_elements(const std::byte* const* operands, std::byte* result, int64_t count) {
  if (count > 0)
    std::memmove(result, operands[0], static_cast<size_t>(count) * Bytes);  // of nothing there may be no memory
}

struct Element16 {
  uint64_t low;
  uint64_t high;
};

template <class T>
struct Select {
  static T apply(uint8_t which, T on_true, T on_false) { return which != 0 ? on_true : on_false; }
};

ScalarKernel find_bitcast_kernel(DType in, DType out) {
  if (tensor::row(in).bits != tensor::row(out).bits) return nullptr;
  // Few bits in a byte: the upper bits follow the sign of the type.
  if (is_narrow_integer(in) && is_narrow_integer(out)) return find_convert_kernel(in, out);
  return find_copy_kernel(tensor::size_bytes(in));
}

ScalarKernel find_family_kernel(ScalarOp op, DType in) {
  switch (in) {
    case DType::kFloat32:
      return op == ScalarOp::kComplex ? find_complex_kernel(op, in) : find_float32_kernel(op);
    case DType::kFloat64:
      return op == ScalarOp::kComplex ? find_complex_kernel(op, in) : find_float64_kernel(op);
    case DType::kComplex64:
    case DType::kComplex128:
      return find_complex_kernel(op, in);
    case DType::kFloat16:
      return op == ScalarOp::kNextAfter ? find_half_next_after_kernel(in) : find_narrow_kernel(op, in);
    case DType::kBfloat16: {
      if (op == ScalarOp::kNextAfter) return find_half_next_after_kernel(in);
      const ScalarKernel own = find_bfloat16_kernel(op);
      return own != nullptr ? own : find_narrow_kernel(op, in);
    }
    default:
      return is_narrow_float(in) || is_narrow_integer(in) ? find_narrow_kernel(op, in) : find_integer_kernel(op, in);
  }
}

}  // namespace

int operand_count(ScalarOp op) { return row_of(op).operands; }

bool is_associative(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
    case ScalarOp::kMultiply:
    case ScalarOp::kMaximum:
    case ScalarOp::kMinimum:
    case ScalarOp::kAnd:
    case ScalarOp::kOr:
    case ScalarOp::kXor:
      return true;
    default:
      return false;
  }
}

std::string_view name(ScalarOp op) { return row_of(op).name; }

bool is_lane_by_lane(ScalarOp op, DType in) {
  switch (op) {
    case ScalarOp::kRemainder:
    case ScalarOp::kErfInv:
    case ScalarOp::kLgamma:
    case ScalarOp::kDigamma:
    case ScalarOp::kBesselI0e:
    case ScalarOp::kBesselI1e:
    case ScalarOp::kZeta:
    case ScalarOp::kPolygamma:
      return true;
    case ScalarOp::kDivide:
    case ScalarOp::kPower:
      return !tensor::is_float(in);
    default:
      return tensor::is_complex(in) && (op < ScalarOp::kReal || op > ScalarOp::kConj);
  }
}

DType result_dtype(ScalarOp op, DType in) {
  if ((op >= ScalarOp::kCompareEq && op <= ScalarOp::kTotalGe) || op == ScalarOp::kIsFinite) return DType::kBool;
  if (op == ScalarOp::kComplex) return in == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
  if (op == ScalarOp::kReal || op == ScalarOp::kImag || op == ScalarOp::kAbs) {
    if (in == DType::kComplex64) return DType::kFloat32;
    if (in == DType::kComplex128) return DType::kFloat64;
  }
  return in;
}

ScalarKernel find_copy_kernel(int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return copy_elements<1>;
    case 2:
      return copy_elements<2>;
    case 4:
      return copy_elements<4>;
    case 8:
      return copy_elements<8>;
    default:
      return copy_elements<16>;
  }
}

ScalarKernel find_select_kernel(int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return vector_kernel<Select<uint8_t>, uint8_t, uint8_t, uint8_t, uint8_t>();
    case 2:
      return vector_kernel<Select<uint16_t>, uint16_t, uint8_t, uint16_t, uint16_t>();
    case 4:
      return vector_kernel<Select<uint32_t>, uint32_t, uint8_t, uint32_t, uint32_t>();
    case 8:
      return vector_kernel<Select<uint64_t>, uint64_t, uint8_t, uint64_t, uint64_t>();
    default:
      return call_kernel<Select<Element16>, Element16, uint8_t, Element16, Element16>();
  }
}

ScalarKernel find_scalar_kernel(ScalarOp op, DType in, DType out) {
  if (op == ScalarOp::kConvert) return find_convert_kernel(in, out);
  if (op == ScalarOp::kBitcast) return find_bitcast_kernel(in, out);
  if (out != result_dtype(op, in)) return nullptr;
  if (op == ScalarOp::kCopy) return find_copy_kernel(tensor::size_bytes(in));
  if (op == ScalarOp::kSelect) return find_select_kernel(tensor::size_bytes(in));
  return find_family_kernel(op, in);
}

}  // namespace meshd::kernels
