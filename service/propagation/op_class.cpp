#include "service/propagation/op_class.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace meshd::propagation {
namespace {

constexpr std::string_view kBroadcastName = "stablehlo.broadcast_in_dim";
constexpr std::string_view kReshapeName = "stablehlo.reshape";
constexpr std::string_view kTransposeName = "stablehlo.transpose";
constexpr std::string_view kSliceName = "stablehlo.slice";
constexpr std::string_view kBitcastName = "stablehlo.bitcast_convert";
/// Custom calls that move an array between memories and leave it as it is.
constexpr std::array<std::string_view, 2> kMoves = {"MoveToDevice", "MoveToHost"};

/// XLA takes CHLO apart before Shardy sees it, into ops that are nearly all pointwise.
bool is_pointwise_chlo(const Node& node) {
  const std::string_view name = node.op->name;
  return name.rfind("chlo.", 0) == 0 && name != "chlo.top_k" && !node.operands.empty() && node.results.size() == 1;
}

bool same_shapes(const Node& node) {
  const std::shared_ptr<const sharding::FactorRule>& rule = node.rule;
  return rule && std::equal(rule->operands.begin(), rule->operands.end(), rule->results.begin(), rule->results.end());
}

}  // namespace

bool is_elementwise(const Node& node) {
  if (node.kind == NodeKind::kConstraint) return true;
  if (node.kind != NodeKind::kOp) return false;
  if (std::holds_alternative<ops::ScalarMath>(node.def->body)) return true;
  return is_pointwise_chlo(node) || (node.op->name == kBitcastName && same_shapes(node));
}

Flow flow_of(const Node& node) {
  if (node.kind == NodeKind::kEdge || is_elementwise(node)) return Flow::kPassThrough;
  if (node.kind != NodeKind::kOp) return Flow::kOther;
  const std::string_view name = node.op->name;
  if (name == kReshapeName || name == kTransposeName) return Flow::kPassThrough;
  if (name == kBroadcastName) return Flow::kBroadcast;
  if (name == "stablehlo.dynamic_slice" || name == "stablehlo.dynamic_update_slice") return Flow::kPassThroughForward;
  if (role_of(node) == ops::Structural::kCustomCall) {
    const std::string target = ir::string_or(node.op->attributes, "call_target_name", "");
    if (std::find(kMoves.begin(), kMoves.end(), target) != kMoves.end()) return Flow::kPassThrough;
  }
  return Flow::kOther;
}

bool is_constant(const Node& node) {
  if (node.kind != NodeKind::kOp || !node.operands.empty()) return false;
  return role_of(node) == ops::Structural::kConstant || node.def->free_result_layout;
}

bool is_broadcast(const Node& node) { return node.kind == NodeKind::kOp && node.op->name == kBroadcastName; }

bool keeps_constants(const Node& node) {
  if (node.kind != NodeKind::kOp) return false;
  return is_broadcast(node) || node.op->name == kReshapeName || node.op->name == kSliceName || is_elementwise(node);
}

}  // namespace meshd::propagation
