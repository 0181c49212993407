// send and recv: values that leave and arrive over a channel. At its other end is the client (a host transfer: the
// queue channel_N), or the recv of the same program that the send is paired with.
#include <string>

#include "service/ops/checks.h"
#include "service/ops/families.h"

namespace meshd::ops {
namespace {

std::vector<ir::Type> infer_send(const OpView& view) {
  if (view.operands.empty() || !view.operands.back().is_token()) {
    reject(view, "send I2: the last operand must be a token, got " +
                     operand_text(view, view.operands.empty() ? 0 : view.operands.size() - 1));
  }
  return agree(view, "send C2", {ir::Type::token()});
}

std::vector<ir::Type> infer_recv(const OpView& view) {
  expect_operand_count(view, "recv", 1);
  if (!view.operands[0].is_token()) reject(view, "recv I1: operand must be a token, got " + operand_text(view, 0));
  if (view.results.empty() || !view.results.back().is_token()) {
    reject(view,
           "recv C4: the last result must be a token, got " + types_text({view.results.begin(), view.results.end()}));
  }
  return {view.results.begin(), view.results.end()};
}

const std::vector<AttributeSpec>& channel_attributes() {
  static const std::vector<AttributeSpec> kAttributes = {
      {"channel_handle", true, "which channel"},
      {"is_host_transfer", false, "whether the client is at the other end"},
      {"source_target_pairs", false, "who sends to whom"}};
  return kAttributes;
}

}  // namespace

std::vector<OpDef> channel_rows() {
  return {
      {.name = "stablehlo.send",
       .summary = "gives values to a channel: to the client, or to a recv of the program",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = "stablehlo.send"(%arg0, %0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    return %arg0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = -1, .attributes = channel_attributes()},
       .infer = infer_send,
       .body = Structural::kEffect,
       .has_effect = true},
      {.name = "stablehlo.recv",
       .summary = "takes values from a channel: from the client, or from a send of the program",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<4xf32> {
    %0 = stablehlo.create_token : !stablehlo.token
    %1:2 = "stablehlo.recv"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
    return %1#0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .attributes = channel_attributes()},
       .infer = infer_recv,
       .body = Structural::kEffect,
       .has_effect = true},
  };
}

}  // namespace meshd::ops
