// The rows of CHLO's pointwise ops.
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/pointwise/builders.h"
#include "service/ops/pointwise/pointwise_vjp.h"
#include "service/ops/pointwise/special_emit.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using tensor::DType;

uint16_t emit_square(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  if (tensor::is_complex(dtype)) return program.emit(kernels::scalar_op("square"), {operands[0]}, dtype);
  return program.emit(ScalarOp::kMultiply, {operands[0], operands[0]}, dtype);
}

uint16_t emit_conj(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  return program.emit(tensor::is_complex(dtype) ? ScalarOp::kConj : ScalarOp::kCopy, {operands[0]}, dtype);
}

/// A register of +infinity, or of -infinity.
uint16_t infinity(const OpView& view, kernels::TileProgram& program, DType dtype, bool negative) {
  const std::optional<uint64_t> bits = tensor::infinity_bits(dtype);
  if (!bits || tensor::size_bytes(dtype) < 2)
    reject(view, "unsupported_dtype", "infinity of " + std::string(tensor::name(dtype)) + " is not supported");
  const uint64_t code = *bits | (negative ? tensor::sign_bit(dtype) : 0);
  std::array<std::byte, 16> element{};
  std::memcpy(element.data(), &code, sizeof(code));
  return program.constant(dtype, element.data());
}

uint16_t emit_is_inf(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  const uint16_t magnitude = program.emit(ScalarOp::kAbs, {operands[0]}, dtype);
  return program.emit(ScalarOp::kCompareEq, {magnitude, infinity(view, program, dtype, false)}, DType::kBool);
}

template <bool kNegative>
uint16_t emit_is_signed_inf(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  return program.emit(ScalarOp::kCompareEq, {operands[0], infinity(view, program, dtype, kNegative)}, DType::kBool);
}

}  // namespace

std::vector<OpDef> chlo_pointwise_rows() {
  return {
      chlo_unary<"chlo.acos", kFloatsOrComplexes>("inverse cosine, in radians", {.op = kernels::scalar_op("acos")},
                                                  {vjp_acos}),
      chlo_unary<"chlo.acosh", kFloatsOrComplexes>("inverse hyperbolic cosine", {.op = kernels::scalar_op("acosh")},
                                                   {vjp_acosh}),
      chlo_unary<"chlo.asin", kFloatsOrComplexes>("inverse sine, in radians", {.op = kernels::scalar_op("asin")},
                                                  {vjp_asin}),
      chlo_unary<"chlo.asinh", kFloatsOrComplexes>("inverse hyperbolic sine", {.op = kernels::scalar_op("asinh")},
                                                   {vjp_asinh}),
      chlo_unary<"chlo.atan", kFloatsOrComplexes>("inverse tangent, in radians", {.op = kernels::scalar_op("atan")},
                                                  {vjp_atan}),
      chlo_unary<"chlo.atanh", kFloatsOrComplexes>("inverse hyperbolic tangent", {.op = kernels::scalar_op("atanh")},
                                                   {vjp_atanh}),
      chlo_unary<"chlo.bessel_i1e">("exponentially scaled modified Bessel function of order 1",
                                    {.op = kernels::scalar_op("bessel_i1e")}),
      chlo_unary<"chlo.conj", kNumbers, Gives::kSame, "complex<f32>", "complex<f32>">("complex conjugate",
                                                                                      {.emit = emit_conj}, {vjp_conj}),
      chlo_unary<"chlo.cosh", kFloatsOrComplexes>("hyperbolic cosine", {.op = kernels::scalar_op("cosh")}, {vjp_cosh}),
      chlo_unary<"chlo.digamma">("derivative of the logarithm of the gamma function", {.op = ScalarOp::kDigamma},
                                 {vjp_digamma}),
      chlo_unary<"chlo.erf">("error function", {.op = kernels::scalar_op("erf")}, {vjp_erf}),
      chlo_unary<"chlo.erf_inv">("inverse error function", {.op = kernels::scalar_op("erf_inv")}, {vjp_erf_inv}),
      chlo_unary<"chlo.erfc">("one minus the error function, exact for large arguments",
                              {.op = kernels::scalar_op("erfc")}, {vjp_erfc}),
      chlo_unary<"chlo.is_inf", kFloats, Gives::kBool, "f32", "i1">("whether each element is infinite",
                                                                    {.emit = emit_is_inf}),
      chlo_unary<"chlo.is_neg_inf", kFloats, Gives::kBool, "f32", "i1">("whether each element is minus infinity",
                                                                        {.emit = emit_is_signed_inf<true>}),
      chlo_unary<"chlo.is_pos_inf", kFloats, Gives::kBool, "f32", "i1">("whether each element is plus infinity",
                                                                        {.emit = emit_is_signed_inf<false>}),
      chlo_unary<"chlo.lgamma">("logarithm of the magnitude of the gamma function", {.op = ScalarOp::kLgamma},
                                {vjp_lgamma}),
      chlo_unary<"chlo.sinh", kFloatsOrComplexes>("hyperbolic sine", {.op = kernels::scalar_op("sinh")}, {vjp_sinh}),
      chlo_unary<"chlo.square", kNumbers>("each element times itself", {.emit = emit_square}, {vjp_square}),
      chlo_unary<"chlo.tan", kFloatsOrComplexes>("tangent, of radians", {.op = kernels::scalar_op("tan")}, {vjp_tan}),
      chlo_binary<"chlo.next_after">("the next number after the first towards the second",
                                     {.op = ScalarOp::kNextAfter}),
      chlo_binary<"chlo.polygamma">("derivative of digamma, of the order that the first operand says",
                                    {.emit = emit_polygamma}, {vjp_polygamma}),
      chlo_binary<"chlo.zeta">("Hurwitz zeta function", {.emit = emit_zeta}, {vjp_zeta}),
  };
}

}  // namespace meshd::ops
