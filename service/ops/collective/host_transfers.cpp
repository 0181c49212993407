// infeed and outfeed: values that arrive and leave while a program runs, through queues of the client.
#include <fmt/core.h>

#include "service/ops/collective/host_transfers.h"

#include <string>

#include "service/ops/checks.h"
#include "service/ops/collective/collective_groups.h"
#include "service/ops/families.h"

namespace meshd::ops {
namespace {

std::vector<ir::Type> infer_infeed(const OpView& view) {
  expect_operand_count(view, "infeed", 1);
  if (!view.operands[0].is_token()) reject(view, "infeed I1: operand must be a token, got " + operand_text(view, 0));
  if (view.results.empty()) reject(view, "infeed C1: needs at least one result");
  if (!view.results.back().is_token()) {
    reject(view, fmt::format("infeed C3: the last result must be a token, got {}", ir::to_string(view.results.back())));
  }
  for (size_t i = 0; i + 1 < view.results.size(); ++i) {
    if (view.results[i].is_tensor()) continue;
    reject(view, fmt::format("infeed C2: result {} must be a tensor, got {}", i, ir::to_string(view.results[i])));
  }
  return {view.results.begin(), view.results.end()};
}

std::vector<ir::Type> infer_outfeed(const OpView& view) {
  if (view.operands.empty() || !view.operands.back().is_token()) {
    reject(view, "outfeed I2: the last operand must be a token, got " +
                     operand_text(view, view.operands.empty() ? 0 : view.operands.size() - 1));
  }
  return agree(view, "outfeed", {ir::Type::token()});
}

}  // namespace

bool is_host_transfer(std::string_view name) {
  return name == "stablehlo.infeed" || name == "stablehlo.outfeed" || name == "stablehlo.send" ||
         name == "stablehlo.recv";
}

TransferInfo host_transfer_of(std::string_view name, const OpView& view) {
  TransferInfo info;
  for (size_t i = 0; i < view.operands.size(); ++i) {
    if (!view.operands[i].is_token()) info.value_operands.push_back(static_cast<int>(i));
  }
  for (size_t i = 0; i < view.results.size(); ++i) {
    if (!view.results[i].is_token()) info.value_results.push_back(static_cast<int>(i));
  }
  const ir::AttributeList& attributes = attributes_of(view);
  if (name == "stablehlo.infeed" || name == "stablehlo.outfeed") {
    const bool in = name == "stablehlo.infeed";
    info.way = in ? TransferKind::kIn : TransferKind::kOut;
    info.queue = ir::string_or(attributes, in ? "infeed_config" : "outfeed_config", "");
    return info;
  }
  const bool is_send = name == "stablehlo.send";
  info.channel = channel_of(view);
  if (ir::bool_or(attributes, "is_host_transfer", false)) {
    info.way = is_send ? TransferKind::kOut : TransferKind::kIn;
    info.queue = fmt::format("channel_{}", info.channel);
    return info;
  }
  info.way = is_send ? TransferKind::kSend : TransferKind::kRecv;
  if (const ir::Attribute* pairs = ir::find(attributes, "source_target_pairs")) {
    const auto* dense = pairs->as<ir::DenseAttr>();
    info.has_pairs = dense != nullptr && tensor::element_count(dense->type.dims) > 0;
  }
  return info;
}

const OpDef& pair_op() { return *find_op("stablehlo.collective_permute"); }

std::vector<OpDef> feed_rows() {
  return {
      {.name = "stablehlo.infeed",
       .summary = "takes the next values that the client feeds; waits for them",
       .example = R"(module @jit_f {
  func.func public @main() -> tensor<4xf32> {
    %0 = stablehlo.create_token : !stablehlo.token
    %1:2 = "stablehlo.infeed"(%0) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
    return %1#0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = 1,
                     .attributes = {{"infeed_config", false, "name of the queue"},
                                    {"layout", false, "of the results"}}},
       .infer = infer_infeed,
       .body = Structural::kEffect,
       .has_effect = true},
      {.name = "stablehlo.outfeed",
       .summary = "gives values to the client while the program runs",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = "stablehlo.outfeed"(%arg0, %0) <{outfeed_config = ""}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    return %arg0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1,
                     .operand_max = -1,
                     .attributes = {{"outfeed_config", false, "name of the queue"}}},
       .infer = infer_outfeed,
       .body = Structural::kEffect,
       .has_effect = true},
  };
}

}  // namespace meshd::ops
