// The scalar kernels of float and double: one table, instantiated once in each of two source files.
#pragma once

#include "service/kernels/elementwise/float_functors.h"
#include "service/kernels/elementwise/lane_loop.h"
#include "service/kernels/elementwise/scalar_tables.h"
#include "service/kernels/elementwise/special_functions.h"

namespace meshd::kernels {

template <class Float, template <class> class F>
ScalarKernel float_unary() {
  return vector_kernel<F<Float>, Float, Float>();
}
template <class Float, template <class> class F>
ScalarKernel float_binary() {
  return vector_kernel<F<Float>, Float, Float, Float>();
}
template <class Float, template <class> class F>
ScalarKernel float_compare() {
  return vector_kernel<F<Float>, uint8_t, Float, Float>();
}
template <class Float, template <class> class F>
ScalarKernel float_total_compare() {
  return vector_kernel<TotalCompare<Float, F>, uint8_t, Float, Float>();
}

/// Functions that have no vector form: through double.
template <class Float, double (*F)(double)>
struct Special {
  static Float apply(Float x) { return static_cast<Float>(F(x)); }
};
template <class Float, double (*F)(double, double)>
struct SpecialOfTwo {
  static Float apply(Float x, Float y) { return static_cast<Float>(F(x, y)); }
};

template <class Float, double (*F)(double)>
ScalarKernel float_special() {
  return call_kernel<Special<Float, F>, Float, Float>();
}

template <class Float>
ScalarKernel find_exact_float(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAbs:
      return float_unary<Float, Absolute>();
    case ScalarOp::kNegate:
      return float_unary<Float, Negate>();
    case ScalarOp::kSign:
      return float_unary<Float, Sign>();
    case ScalarOp::kSqrt:
      return float_unary<Float, Sqrt>();
    case ScalarOp::kSquare:
      return float_unary<Float, Square>();
    case ScalarOp::kFloor:
      return float_unary<Float, Floor>();
    case ScalarOp::kCeil:
      return float_unary<Float, Ceil>();
    case ScalarOp::kRoundAfz:
      return float_unary<Float, RoundAway>();
    case ScalarOp::kRoundEven:
      return float_unary<Float, RoundEven>();
    case ScalarOp::kIsFinite:
      return vector_kernel<IsFinite<Float>, uint8_t, Float>();
    case ScalarOp::kAdd:
      return float_binary<Float, Add>();
    case ScalarOp::kSubtract:
      return float_binary<Float, Subtract>();
    case ScalarOp::kMultiply:
      return float_binary<Float, Multiply>();
    case ScalarOp::kDivide:
      return float_binary<Float, Divide>();
    case ScalarOp::kRemainder:
      return call_kernel<Remainder<Float>, Float, Float, Float>();
    case ScalarOp::kMaximum:
      return float_binary<Float, Maximum>();
    case ScalarOp::kMinimum:
      return float_binary<Float, Minimum>();
    case ScalarOp::kNextAfter:
      return float_binary<Float, NextAfter>();
    case ScalarOp::kClamp:
      return vector_kernel<Clamp<Float>, Float, Float, Float, Float>();
    case ScalarOp::kCompareEq:
      return float_compare<Float, CompareEq>();
    case ScalarOp::kCompareNe:
      return float_compare<Float, CompareNe>();
    case ScalarOp::kCompareLt:
      return float_compare<Float, CompareLt>();
    case ScalarOp::kCompareLe:
      return float_compare<Float, CompareLe>();
    case ScalarOp::kCompareGt:
      return float_compare<Float, CompareGt>();
    case ScalarOp::kCompareGe:
      return float_compare<Float, CompareGe>();
    case ScalarOp::kTotalEq:
      return float_total_compare<Float, CompareEq>();
    case ScalarOp::kTotalNe:
      return float_total_compare<Float, CompareNe>();
    case ScalarOp::kTotalLt:
      return float_total_compare<Float, CompareLt>();
    case ScalarOp::kTotalLe:
      return float_total_compare<Float, CompareLe>();
    case ScalarOp::kTotalGt:
      return float_total_compare<Float, CompareGt>();
    case ScalarOp::kTotalGe:
      return float_total_compare<Float, CompareGe>();
    default:
      return nullptr;
  }
}

template <class Float>
ScalarKernel find_rounded_float(ScalarOp op) {
  switch (op) {
    case ScalarOp::kExp:
      return float_unary<Float, Exp>();
    case ScalarOp::kExpm1:
      return float_unary<Float, Expm1>();
    case ScalarOp::kLog:
      return float_unary<Float, Log>();
    case ScalarOp::kLog1p:
      return float_unary<Float, Log1p>();
    case ScalarOp::kRsqrt:
      return float_unary<Float, Rsqrt>();
    case ScalarOp::kCbrt:
      return float_unary<Float, Cbrt>();
    case ScalarOp::kSin:
      return float_unary<Float, Sin>();
    case ScalarOp::kCos:
      return float_unary<Float, Cos>();
    case ScalarOp::kTan:
      return float_unary<Float, Tan>();
    case ScalarOp::kTanh:
      return float_unary<Float, Tanh>();
    case ScalarOp::kLogistic:
      return float_unary<Float, Logistic>();
    case ScalarOp::kErf:
      return float_unary<Float, Erf>();
    case ScalarOp::kErfc:
      return float_unary<Float, Erfc>();
    case ScalarOp::kAsin:
      return float_unary<Float, Asin>();
    case ScalarOp::kAcos:
      return float_unary<Float, Acos>();
    case ScalarOp::kAtan:
      return float_unary<Float, Atan>();
    case ScalarOp::kSinh:
      return float_unary<Float, Sinh>();
    case ScalarOp::kCosh:
      return float_unary<Float, Cosh>();
    case ScalarOp::kAsinh:
      return float_unary<Float, Asinh>();
    case ScalarOp::kAcosh:
      return float_unary<Float, Acosh>();
    case ScalarOp::kAtanh:
      return float_unary<Float, Atanh>();
    case ScalarOp::kPower:
      return float_binary<Float, Power>();
    case ScalarOp::kAtan2:
      return float_binary<Float, Atan2>();
    case ScalarOp::kErfInv:
      return float_special<Float, erf_inv>();
    case ScalarOp::kLgamma:
      return float_special<Float, log_gamma>();
    case ScalarOp::kDigamma:
      return float_special<Float, digamma>();
    case ScalarOp::kBesselI0e:
      return float_special<Float, bessel_i0e>();
    case ScalarOp::kBesselI1e:
      return float_special<Float, bessel_i1e>();
    case ScalarOp::kZeta:
      return call_kernel<SpecialOfTwo<Float, zeta>, Float, Float, Float>();
    case ScalarOp::kPolygamma:
      return call_kernel<SpecialOfTwo<Float, polygamma>, Float, Float, Float>();
    default:
      return nullptr;
  }
}

/// The kernel of an op on Float, or null.
template <class Float>
ScalarKernel find_float_kernel(ScalarOp op) {
  const ScalarKernel exact = find_exact_float<Float>(op);
  return exact != nullptr ? exact : find_rounded_float<Float>(op);
}

}  // namespace meshd::kernels
