// uniform_quantize and uniform_dequantize: floats as quantised elements and back.
// program/transform/legalize_quantized.h writes them in ordinary ops, so that their rows have no kernel.
#include <fmt/core.h>

#include <string>

#include "service/ops/checks.h"
#include "service/ops/pointwise/pointwise_special.h"
#include "service/ops/quantized.h"

namespace meshd::ops {
namespace {

/// Operand 0 and the declared result, which have one shape (C1).
std::pair<ir::Type, ir::Type> types_of(const OpView& view, const std::string& op) {
  expect_tensor_operands(view, op, 1);
  const ir::Type result = declared(view, op, 1)[0];
  if (!result.is_tensor() || !compatible_shapes(view.operands[0].dims(), result.dims())) {
    reject(view, fmt::format("{} C1: operand and result have one shape ({} and {})", op, operand_text(view, 0),
                             ir::to_string(result)));
  }
  return {view.operands[0], result};
}

std::vector<ir::Type> infer_uniform_quantize(const OpView& view) {
  const auto [operand, result] = types_of(view, "uniform_quantize");
  if (!result.is_quantized())
    reject(view, fmt::format("uniform_quantize O1: the result is quantized, got {}", ir::to_string(result)));
  if (expressed_type(operand).dtype() != result.quantization->expressed) {
    reject(view, fmt::format("uniform_quantize C2: operand and result have one expressed type ({} and {})",
                             ir::to_string(operand), ir::to_string(result)));
  }
  return {result};
}

std::vector<ir::Type> infer_uniform_dequantize(const OpView& view) {
  const auto [operand, result] = types_of(view, "uniform_dequantize");
  if (!operand.is_quantized())
    reject(view, fmt::format("uniform_dequantize I1: the operand is quantized, got {}", ir::to_string(operand)));
  if (result.is_quantized() || result.dtype() != operand.quantization->expressed) {
    reject(view, fmt::format("uniform_dequantize C2: the result has the operand's expressed type ({} and {})",
                             ir::to_string(operand), ir::to_string(result)));
  }
  return {result};
}

constexpr QuantizedTypes kConversion{.form = QuantizedForm::kConvert, .per_axis = true};

}  // namespace

OpDef uniform_quantize_row() {
  return {.name = "stablehlo.uniform_quantize",
          .summary =
              "floats, or quantized elements with other parameters, as quantized elements: x / scale + "
              "zero_point, held in range and rounded to nearest even",
          .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>> {
    %0 = stablehlo.uniform_quantize %arg0 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>
    return %0 : tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>
  }
}
)",
          .signature = {.operand_min = 1, .operand_max = 1},
          .infer = infer_uniform_quantize,
          .quantized = kConversion,
          .rule = pointwise_rule};
}

OpDef uniform_dequantize_row() {
  return {.name = "stablehlo.uniform_dequantize",
          .summary = "the floats that quantized elements stand for: (x - zero_point) * scale",
          .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<4xf32> {
    %0 = stablehlo.uniform_dequantize %arg0 : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
          .signature = {.operand_min = 1, .operand_max = 1},
          .infer = infer_uniform_dequantize,
          .quantized = kConversion,
          .rule = pointwise_rule};
}

}  // namespace meshd::ops
