// The rows of StableHLO's pointwise ops. The common ones are a line each; those with attributes or mixed types follow
// below.
#include <array>
#include <string>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/ops/families.h"
#include "service/ops/pointwise/builders.h"
#include "service/ops/pointwise/pointwise_special.h"
#include "service/ops/pointwise/pointwise_vjp.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;

constexpr DTypeSet kSignedNumbers = kSignedIntegers | kFloatsOrComplexes;

/// The same row, which takes quantised types so.
OpDef with_quantized(OpDef def, const QuantizedTypes& types) {
  def.quantized = types;
  return def;
}

}  // namespace

std::vector<OpDef> pointwise_rows() {
  return {
      // one operand
      with_quantized(pointwise_unary_to<"stablehlo.abs", kSignedNumbers, Gives::kPart, "complex<f32>", "f32">(
                         "magnitude: the absolute value of each element", {.op = ScalarOp::kAbs}, {vjp_abs}),
                     kQuantizedMath),
      pointwise_unary<"stablehlo.cbrt">("cubic root", kernels::scalar_op("cbrt"), {vjp_cbrt}),
      pointwise_unary<"stablehlo.ceil", kFloats>("the least whole number not below each element",
                                                 kernels::scalar_op("ceil"), kZeroDerivative),
      pointwise_unary<"stablehlo.cosine">("cosine, of radians", kernels::scalar_op("cosine"), {vjp_cosine}),
      pointwise_unary<"stablehlo.count_leading_zeros", kIntegers, "i32">("leading zero bits",
                                                                         kernels::scalar_op("count_leading_zeros")),
      pointwise_unary<"stablehlo.exponential">("e to the power of each element", ScalarOp::kExp, {vjp_exponential}),
      pointwise_unary<"stablehlo.exponential_minus_one">("e to the power of each element, minus one; exact near zero",
                                                         kernels::scalar_op("exponential_minus_one"),
                                                         {vjp_exponential_minus_one}),
      pointwise_unary<"stablehlo.floor", kFloats>("the greatest whole number not above each element", ScalarOp::kFloor,
                                                  kZeroDerivative),
      with_quantized(pointwise_unary_to<"stablehlo.is_finite", kFloats, Gives::kBool, "f32", "i1">(
                         "whether each element is neither infinite nor NaN", {.op = kernels::scalar_op("is_finite")}),
                     kQuantizedMath),
      pointwise_unary<"stablehlo.log">("natural logarithm", kernels::scalar_op("log"), {vjp_log}),
      pointwise_unary<"stablehlo.log_plus_one">("natural logarithm of one plus each element; exact near zero",
                                                kernels::scalar_op("log_plus_one"), {vjp_log_plus_one}),
      pointwise_unary<"stablehlo.logistic">("1 / (1 + exp(-x))", kernels::scalar_op("logistic"), {vjp_logistic}),
      pointwise_unary<"stablehlo.negate", kNumbers>("each element with its sign changed", ScalarOp::kNegate,
                                                    {vjp_negate}),
      pointwise_unary<"stablehlo.not", kBoolsOrIntegers, "i1">("logical negation, or every bit changed",
                                                               kernels::scalar_op("not")),
      pointwise_unary<"stablehlo.popcnt", kIntegers, "i32">("one bits of each element", kernels::scalar_op("popcnt")),
      pointwise_unary<"stablehlo.round_nearest_afz", kFloats>("nearest whole number, halves away from zero",
                                                              kernels::scalar_op("round_nearest_afz"), kZeroDerivative),
      pointwise_unary<"stablehlo.round_nearest_even", kFloats>(
          "nearest whole number, halves to even", kernels::scalar_op("round_nearest_even"), kZeroDerivative),
      pointwise_unary<"stablehlo.rsqrt">("1 / sqrt(x)", kernels::scalar_op("rsqrt"), {vjp_rsqrt}),
      pointwise_unary<"stablehlo.sign", kSignedNumbers>("-1, 0 or 1; x / |x| for complex elements",
                                                        kernels::scalar_op("sign"), kZeroDerivative),
      pointwise_unary<"stablehlo.sine">("sine, of radians", kernels::scalar_op("sine"), {vjp_sine}),
      pointwise_unary<"stablehlo.sqrt">("square root", kernels::scalar_op("sqrt"), {vjp_sqrt}),
      pointwise_unary<"stablehlo.tan">("tangent, of radians", kernels::scalar_op("tan"), {vjp_tan}),
      pointwise_unary<"stablehlo.tanh">("hyperbolic tangent", kernels::scalar_op("tanh"), {vjp_tanh}),
      // two operands
      with_quantized(
          pointwise_binary<"stablehlo.add", kAnyDType>("sum; logical or of booleans", ScalarOp::kAdd, {vjp_add}),
          kQuantizedSum),
      pointwise_binary<"stablehlo.and", kBoolsOrIntegers, "i32">("logical or bitwise and", ScalarOp::kAnd),
      atan2_row(),
      pointwise_binary<"stablehlo.divide">("quotient; of integers rounded towards zero", ScalarOp::kDivide,
                                           {vjp_divide}),
      pointwise_binary<"stablehlo.multiply", kAnyDType>("product; logical and of booleans", ScalarOp::kMultiply,
                                                        {vjp_multiply}),
      pointwise_binary<"stablehlo.or", kBoolsOrIntegers, "i32">("logical or bitwise or", ScalarOp::kOr),
      pointwise_binary<"stablehlo.remainder">("remainder of a division; has the dividend's sign", ScalarOp::kRemainder,
                                              {vjp_remainder}),
      pointwise_binary<"stablehlo.shift_left", kIntegers, "i32">("bits moved up; zero when by the width or more",
                                                                 ScalarOp::kShiftLeft),
      pointwise_binary<"stablehlo.shift_right_arithmetic", kIntegers, "i32">(
          "bits moved down, the sign filling in", kernels::scalar_op("shift_right_arithmetic")),
      pointwise_binary<"stablehlo.shift_right_logical", kIntegers, "ui32">("bits moved down, zeros filling in",
                                                                           ScalarOp::kShiftRightLogical),
      pointwise_binary<"stablehlo.subtract">("difference", ScalarOp::kSubtract, {vjp_subtract}),
      pointwise_binary<"stablehlo.xor", kBoolsOrIntegers, "i32">("exclusive or", ScalarOp::kXor),
      // attributes, or types that differ
      bitcast_convert_row(),
      clamp_row(),
      compare_row(),
      complex_row(),
      convert_row(),
      imag_row(),
      maximum_row(),
      minimum_row(),
      power_row(),
      real_row(),
      reduce_precision_row(),
      select_row(),
      uniform_dequantize_row(),
      uniform_quantize_row(),
  };
}

}  // namespace meshd::ops
