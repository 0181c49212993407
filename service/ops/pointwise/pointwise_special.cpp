#include "service/ops/pointwise/pointwise_special.h"

#include <fmt/core.h>

#include <array>
#include <string>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/checks.h"
#include "service/ops/pointwise/builders.h"
#include "service/ops/pointwise/pointwise_vjp.h"
#include "service/ops/pointwise/special_emit.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using tensor::DType;

struct Comparison {
  std::string_view direction;
  ScalarOp partial;  ///< as IEEE 754 compares
  ScalarOp total;    ///< TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < NaN
};
constexpr Comparison kComparisons[] = {
    {"EQ", ScalarOp::kCompareEq, ScalarOp::kTotalEq}, {"NE", ScalarOp::kCompareNe, ScalarOp::kTotalNe},
    {"LT", ScalarOp::kCompareLt, ScalarOp::kTotalLt}, {"LE", ScalarOp::kCompareLe, ScalarOp::kTotalLe},
    {"GT", ScalarOp::kCompareGt, ScalarOp::kTotalGt}, {"GE", ScalarOp::kCompareGe, ScalarOp::kTotalGe},
};

const Comparison& comparison_of(const OpView& view) {
  const std::string direction = ir::string_or(attributes_of(view), "comparison_direction", "");
  for (const Comparison& row : kComparisons) {
    if (row.direction == direction) return row;
  }
  reject(view, "compare I3: comparison_direction must be EQ, NE, LT, LE, GT or GE, got '" + direction + "'");
}

/// The compare_type of a dtype where the attribute is absent.
std::string_view natural_compare_type(DType dtype) {
  if (tensor::is_float(dtype) || tensor::is_complex(dtype)) return "FLOAT";
  return tensor::is_signed_integer(dtype) ? "SIGNED" : "UNSIGNED";
}

/// Complex numbers in lexicographic order: the real parts decide, the imaginary parts where those are equal.
uint16_t emit_complex_order(kernels::TileProgram& program, ScalarOp order, DType dtype, uint16_t lhs, uint16_t rhs) {
  const DType part = part_of(dtype);
  const uint16_t lhs_real = program.emit(ScalarOp::kReal, {lhs}, part);
  const uint16_t rhs_real = program.emit(ScalarOp::kReal, {rhs}, part);
  const uint16_t same = program.emit(ScalarOp::kCompareEq, {lhs_real, rhs_real}, DType::kBool);
  const uint16_t by_real = program.emit(order, {lhs_real, rhs_real}, DType::kBool);
  const uint16_t lhs_imag = program.emit(ScalarOp::kImag, {lhs}, part);
  const uint16_t rhs_imag = program.emit(ScalarOp::kImag, {rhs}, part);
  const uint16_t by_imag = program.emit(order, {lhs_imag, rhs_imag}, DType::kBool);
  return program.emit(ScalarOp::kSelect, {same, by_imag, by_real}, DType::kBool);
}

uint16_t emit_compare(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const Comparison& row = comparison_of(view);
  const DType dtype = view.operands[0].dtype();
  const bool total = ir::string_or(attributes_of(view), "compare_type", "") == "TOTALORDER" && tensor::is_float(dtype);
  const bool needs_order = row.partial != ScalarOp::kCompareEq && row.partial != ScalarOp::kCompareNe;
  if (tensor::is_complex(dtype) && needs_order) {
    return emit_complex_order(program, row.partial, dtype, operands[0], operands[1]);
  }
  return program.emit(total ? row.total : row.partial, {operands[0], operands[1]}, DType::kBool);
}

template <ScalarOp kExtreme, ScalarOp kOrder>
uint16_t emit_extreme(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  if (!tensor::is_complex(dtype)) return program.emit(kExtreme, {operands[0], operands[1]}, dtype);
  const uint16_t first = emit_complex_order(program, kOrder, dtype, operands[0], operands[1]);
  return program.emit(ScalarOp::kSelect, {first, operands[0], operands[1]}, dtype);
}

std::vector<ir::Type> infer_compare(const OpView& view) {
  std::vector<ir::Type> results = infer_pointwise(view, "compare", 2, kAnyDType, Gives::kBool);
  comparison_of(view);
  const DType dtype = view.operands[0].dtype();
  const std::string type = ir::string_or(attributes_of(view), "compare_type", "NOTYPE");
  const bool fits =
      type == "NOTYPE" || type == natural_compare_type(dtype) || (type == "TOTALORDER" && tensor::is_float(dtype));
  if (!fits) {
    reject(view, "compare C3: compare_type of " + operand_text(view, 0) + " is " +
                     std::string(natural_compare_type(dtype)) + ", got " + type);
  }
  return results;
}

std::vector<ir::Type> infer_select(const OpView& view) {
  expect_tensor_operands(view, "select", 3);
  const ir::Type& pred = view.operands[0];
  if (pred.dtype() != DType::kBool) reject(view, "select I1: pred must be boolean, got " + operand_text(view, 0));
  if (!compatible(view.operands[1], view.operands[2])) {
    reject(view, "select C2: on_true and on_false must have one type (" + operand_text(view, 1) + " and " +
                     operand_text(view, 2) + ")");
  }
  if (pred.rank() != 0 && !compatible_shapes(pred.dims(), view.operands[1].dims())) {
    reject(view, "select C1: pred must be a scalar or have the shape of on_true (" + operand_text(view, 0) + " and " +
                     operand_text(view, 1) + ")");
  }
  return agree(view, "select C2",
               {ir::Type::of({view.operands[1].dtype(), merged(view.operands[1].dims(), view.operands[2].dims())})});
}

std::vector<ir::Type> infer_clamp(const OpView& view) {
  expect_tensor_operands(view, "clamp", 3);
  const ir::Type& operand = view.operands[1];
  if (!contains(kAnyDType & ~kComplexes, operand.dtype())) {
    reject(view, "clamp I2: element type must have an order, got " + operand_text(view, 1));
  }
  for (const size_t bound : {size_t{0}, size_t{2}}) {
    const std::string name = bound == 0 ? "min" : "max";
    if (view.operands[bound].dtype() != operand.dtype()) {
      reject(view, "clamp C3: " + name + " and operand must have one element type (" + operand_text(view, bound) +
                       " and " + operand_text(view, 1) + ")");
    }
    if (view.operands[bound].rank() != 0 && !compatible_shapes(view.operands[bound].dims(), operand.dims())) {
      reject(view, std::string("clamp ") + (bound == 0 ? "C1: " : "C2: ") + name +
                       " must be a scalar or have the operand's shape (" + operand_text(view, bound) + " and " +
                       operand_text(view, 1) + ")");
    }
  }
  return agree(view, "clamp C4", {operand});
}

std::vector<ir::Type> infer_complex(const OpView& view) {
  for (const ir::Type& type : view.operands) {
    if (type.is_tensor() && type.dtype() != DType::kFloat32 && type.dtype() != DType::kFloat64) {
      reject(view, fmt::format("complex I1: parts must be f32 or f64, got {}", ir::to_string(type)));
    }
  }
  return infer_pointwise(view, "complex", 2, kFloats, Gives::kComplex);
}

std::vector<ir::Type> infer_convert(const OpView& view) {
  expect_tensor_operands(view, "convert", 1);
  std::vector<ir::Type> results = declared(view, "convert", 1);
  if (!results[0].is_tensor() || !compatible_shapes(results[0].dims(), view.operands[0].dims())) {
    reject(view, fmt::format("convert C1: operand and result must have one shape ({} and {})", operand_text(view, 0),
                             ir::to_string(results[0])));
  }
  return results;
}

uint16_t emit_real(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  return program.emit(tensor::is_complex(dtype) ? ScalarOp::kReal : ScalarOp::kCopy, {operands[0]}, part_of(dtype));
}

uint16_t emit_imag(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  if (tensor::is_complex(dtype)) return program.emit(ScalarOp::kImag, {operands[0]}, part_of(dtype));
  // The imaginary part of a real number is zero.
  const std::array<std::byte, 16> zero{};
  return program.constant(dtype, zero.data());
}

/// Of complex y and x, as XLA defines it: -i log((x + i y) / sqrt(x^2 + y^2)).
uint16_t emit_atan2(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  const DType dtype = view.operands[0].dtype();
  const uint16_t y = operands[0];
  const uint16_t x = operands[1];
  if (!tensor::is_complex(dtype)) return program.emit(kernels::scalar_op("atan2"), {y, x}, dtype);
  const DType part = tensor::part_of(dtype);
  const auto real = [&](uint16_t value) { return program.emit(ScalarOp::kReal, {value}, part); };
  const auto imag = [&](uint16_t value) { return program.emit(ScalarOp::kImag, {value}, part); };
  const auto complex = [&](uint16_t re, uint16_t im) { return program.emit(ScalarOp::kComplex, {re, im}, dtype); };
  const uint16_t rotated = complex(program.emit(ScalarOp::kNegate, {imag(y)}, part), real(y));
  const uint16_t squares = program.emit(
      ScalarOp::kAdd,
      {program.emit(ScalarOp::kMultiply, {x, x}, dtype), program.emit(ScalarOp::kMultiply, {y, y}, dtype)}, dtype);
  const uint16_t radius = program.emit(kernels::scalar_op("sqrt"), {squares}, dtype);
  const uint16_t unit =
      program.emit(ScalarOp::kDivide, {program.emit(ScalarOp::kAdd, {x, rotated}, dtype), radius}, dtype);
  const uint16_t log = program.emit(kernels::scalar_op("log"), {unit}, dtype);
  return complex(imag(log), program.emit(ScalarOp::kNegate, {real(log)}, part));
}

std::vector<ir::Type> infer_reduce_precision(const OpView& view) {
  std::vector<ir::Type> results = infer_pointwise(view, "reduce_precision", 1, kFloats, Gives::kSame);
  const int64_t exponent_bits = ir::int_or(attributes_of(view), "exponent_bits", 0);
  const int64_t mantissa_bits = ir::int_or(attributes_of(view), "mantissa_bits", -1);
  if (exponent_bits < 1) {
    reject(view, fmt::format("reduce_precision C2: exponent_bits must be at least 1, got {}", exponent_bits));
  }
  if (mantissa_bits < 0) {
    reject(view, fmt::format("reduce_precision C3: mantissa_bits must not be negative, got {}", mantissa_bits));
  }
  return results;
}

uint16_t emit_reduce_precision(const OpView& view, kernels::TileProgram& program, std::span<const uint16_t> operands) {
  // More bits than any type has change nothing; the bound keeps the numbers within int.
  const auto bits = [&](std::string_view name) {
    return static_cast<int>(std::min<int64_t>(ir::int_or(attributes_of(view), name, 0), 64));
  };
  return program.emit_reduce_precision(operands[0], bits("exponent_bits"), bits("mantissa_bits"));
}

}  // namespace

OpDef maximum_row() {
  OpDef def = pointwise_binary<"stablehlo.maximum", kAnyDType>(
      "the larger of two; complex numbers by their real parts first", ScalarOp::kMaximum);
  def.body = ScalarMath{.op = ScalarOp::kMaximum, .emit = emit_extreme<ScalarOp::kMaximum, ScalarOp::kCompareGt>};
  def.derivative = {vjp_extreme};
  return def;
}

OpDef minimum_row() {
  OpDef def = pointwise_binary<"stablehlo.minimum", kAnyDType>(
      "the smaller of two; complex numbers by their real parts first", ScalarOp::kMinimum);
  def.body = ScalarMath{.op = ScalarOp::kMinimum, .emit = emit_extreme<ScalarOp::kMinimum, ScalarOp::kCompareLt>};
  def.derivative = {vjp_extreme};
  return def;
}

OpDef compare_row() {
  OpDef def = pointwise<"stablehlo.compare", 2, kAnyDType, Gives::kBool>("compares elements: EQ, NE, LT, LE, GT or GE",
                                                                         {.emit = emit_compare});
  def.text.shape = TextShape::kCompare;
  def.infer = infer_compare;
  def.quantized = kQuantizedMath;
  def.signature.attributes = {
      {"comparison_direction", true, "EQ, NE, LT, LE, GT or GE"},
      {"compare_type", false, "FLOAT, TOTALORDER, SIGNED or UNSIGNED; follows from the type when absent"}};
  def.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xi1> {
    %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    return %0 : tensor<4xi1>
  }
}
)";
  return def;
}

OpDef select_row() {
  OpDef def = pointwise<"stablehlo.select", 3, kAnyDType, Gives::kSame>("on_true where pred holds, on_false elsewhere",
                                                                        {.op = ScalarOp::kSelect});
  def.text.types = TextTypes::kSelect;
  def.infer = infer_select;
  def.quantized = kQuantizedJoined;
  def.derivative = {vjp_select};
  def.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xi1>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4xi1>, tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)";
  return def;
}

OpDef clamp_row() {
  OpDef def = pointwise<"stablehlo.clamp", 3, kAnyDType, Gives::kSame>("operand, but not below min and not above max",
                                                                       {.op = ScalarOp::kClamp});
  def.infer = infer_clamp;
  def.quantized = kQuantizedMath;
  def.derivative = {vjp_clamp};
  def.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<4xf32>, %arg2: tensor<f32>) -> tensor<4xf32> {
    %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)";
  return def;
}

OpDef complex_row() {
  OpDef def = pointwise<"stablehlo.complex", 2, kFloats, Gives::kComplex>(
      "complex numbers from real and imaginary parts", {.op = ScalarOp::kComplex});
  def.text.types = TextTypes::kComplexParts;
  def.infer = infer_complex;
  def.derivative = {vjp_complex};
  def.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xcomplex<f32>> {
    %0 = stablehlo.complex %arg0, %arg1 : tensor<4xcomplex<f32>>
    return %0 : tensor<4xcomplex<f32>>
  }
}
)";
  return def;
}

OpDef atan2_row() {
  OpDef def = pointwise_binary<"stablehlo.atan2", kFloatsOrComplexes>("the angle of the point (x, y), in radians",
                                                                      kernels::scalar_op("atan2"), {vjp_atan2});
  def.body = ScalarMath{.emit = emit_atan2};
  return def;
}

OpDef power_row() {
  OpDef def =
      pointwise_binary<"stablehlo.power">("the first to the power of the second", ScalarOp::kPower, {vjp_power});
  def.body = ScalarMath{.emit = emit_power};
  return def;
}

OpDef convert_row() {
  OpDef def = pointwise_unary_to<"stablehlo.convert", kAnyDType, Gives::kSame, "f32", "i32">(
      "the same numbers in another element type", {.op = ScalarOp::kConvert});
  def.also = "mhlo.copy";  // of one type
  def.infer = infer_convert;
  def.derivative = {vjp_convert};
  return def;
}

OpDef imag_row() {
  return pointwise_unary_to<"stablehlo.imag", kFloatsOrComplexes, Gives::kPart, "complex<f32>", "f32">(
      "imaginary part", {.emit = emit_imag}, {vjp_imag});
}

OpDef real_row() {
  return pointwise_unary_to<"stablehlo.real", kFloatsOrComplexes, Gives::kPart, "complex<f32>", "f32">(
      "real part", {.emit = emit_real}, {vjp_real});
}

OpDef reduce_precision_row() {
  OpDef def = pointwise<"stablehlo.reduce_precision", 1, kFloats, Gives::kSame>(
      "rounds to fewer exponent and mantissa bits and keeps the type; without mantissa bits NaN becomes infinity",
      {.emit = emit_reduce_precision});
  def.text.fields = {{"format", FieldKind::kFormat}};
  def.infer = infer_reduce_precision;
  def.quantized = kQuantizedMath;
  def.signature.attributes = {{"exponent_bits", true, "bits of the exponent, at least 1"},
                              {"mantissa_bits", true, "bits of the mantissa, at least 0"}};
  def.derivative = {vjp_reduce_precision};
  def.example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)";
  return def;
}

}  // namespace meshd::ops
