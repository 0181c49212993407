// Builders of common rows, in one line each: pointwise_unary<"stablehlo.abs", kNumbers>("magnitude", ScalarOp::kAbs).
// The op's name is a template argument because infer functions are plain functions and their messages name the op.
#pragma once

#include <string_view>

#include "service/ops/fixed_string.h"
#include "service/ops/op_def.h"
#include "service/ops/pointwise/pointwise.h"
#include "service/ops/quantized.h"

namespace meshd::ops {

template <FixedString kName, size_t kOperands, DTypeSet kTakes, Gives kGives>
std::vector<ir::Type> infer_pointwise_of(const OpView& view) {
  return infer_pointwise(view, mnemonic(kName.view()), kOperands, kTakes, kGives);
}

/// A pointwise row of `kOperands` operands; the caller adds the example.
template <FixedString kName, size_t kOperands, DTypeSet kTakes, Gives kGives>
OpDef pointwise(std::string_view summary, ScalarMath body) {
  OpDef def;
  def.name = kName.view();
  def.summary = summary;
  def.signature = {.operand_min = kOperands, .operand_max = kOperands, .region_count = 0, .attributes = {}};
  def.infer = infer_pointwise_of<kName, kOperands, kTakes, kGives>;
  def.rule = pointwise_rule;
  def.body = body;
  return def;
}

/// One operand, and a result of the same type. `kElement` is the example's element type.
template <FixedString kName, DTypeSet kTakes = kFloatsOrComplexes, FixedString kElement = "f32">
OpDef pointwise_unary(std::string_view summary, kernels::ScalarOp op, Derivative derivative = {}) {
  OpDef def = pointwise<kName, 1, kTakes, Gives::kSame>(summary, {.op = op});
  if ((kTakes & kFloats) != 0) def.quantized = kQuantizedMath;
  def.derivative = derivative;
  def.example = Joined<"module @jit_f {\n  func.func public @main(%arg0: tensor<4x", kElement, ">) -> tensor<4x",
                       kElement, "> {\n    %0 = ", kName, " %arg0 : tensor<4x", kElement,
                       ">\n    return %0 : tensor<4x", kElement, ">\n  }\n}\n">::view;
  return def;
}

/// One operand, and a result of another type, which the text then writes out.
template <FixedString kName, DTypeSet kTakes, Gives kGives, FixedString kElement, FixedString kResult>
OpDef pointwise_unary_to(std::string_view summary, ScalarMath body, Derivative derivative = {}) {
  OpDef def = pointwise<kName, 1, kTakes, kGives>(summary, body);
  def.derivative = derivative;
  def.example = Joined<"module @jit_f {\n  func.func public @main(%arg0: tensor<4x", kElement, ">) -> tensor<4x",
                       kResult, "> {\n    %0 = ", kName, " %arg0 : (tensor<4x", kElement, ">) -> tensor<4x", kResult,
                       ">\n    return %0 : tensor<4x", kResult, ">\n  }\n}\n">::view;
  return def;
}

/// Two operands of one type, and a result of the same.
template <FixedString kName, DTypeSet kTakes = kNumbers, FixedString kElement = "f32">
OpDef pointwise_binary(std::string_view summary, kernels::ScalarOp op, Derivative derivative = {}) {
  OpDef def = pointwise<kName, 2, kTakes, Gives::kSame>(summary, {.op = op});
  if ((kTakes & kFloats) != 0) def.quantized = kQuantizedMath;
  def.derivative = derivative;
  def.example = Joined<"module @jit_f {\n  func.func public @main(%arg0: tensor<4x", kElement, ">, %arg1: tensor<4x",
                       kElement, ">) -> tensor<4x", kElement, "> {\n    %0 = ", kName, " %arg0, %arg1 : tensor<4x",
                       kElement, ">\n    return %0 : tensor<4x", kElement, ">\n  }\n}\n">::view;
  return def;
}

/// A CHLO op of one operand: its text writes both types, `chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>`.
template <FixedString kName, DTypeSet kTakes = kFloats, Gives kGives = Gives::kSame, FixedString kElement = "f32",
          FixedString kResult = "f32">
OpDef chlo_unary(std::string_view summary, ScalarMath body, Derivative derivative = {}) {
  OpDef def = pointwise<kName, 1, kTakes, kGives>(summary, body);
  def.derivative = derivative;
  def.example = Joined<"module @jit_f {\n  func.func public @main(%arg0: tensor<4x", kElement, ">) -> tensor<4x",
                       kResult, "> {\n    %0 = ", kName, " %arg0 : tensor<4x", kElement, "> -> tensor<4x", kResult,
                       ">\n    return %0 : tensor<4x", kResult, ">\n  }\n}\n">::view;
  return def;
}

/// A CHLO op of two operands.
template <FixedString kName, DTypeSet kTakes = kFloats, FixedString kElement = "f32">
OpDef chlo_binary(std::string_view summary, ScalarMath body, Derivative derivative = {}) {
  OpDef def = pointwise<kName, 2, kTakes, Gives::kSame>(summary, body);
  def.derivative = derivative;
  def.example = Joined<"module @jit_f {\n  func.func public @main(%arg0: tensor<4x", kElement, ">, %arg1: tensor<4x",
                       kElement, ">) -> tensor<4x", kElement, "> {\n    %0 = ", kName, " %arg0, %arg1 : tensor<4x",
                       kElement, ">, tensor<4x", kElement, "> -> tensor<4x", kElement, ">\n    return %0 : tensor<4x",
                       kElement, ">\n  }\n}\n">::view;
  return def;
}

}  // namespace meshd::ops
