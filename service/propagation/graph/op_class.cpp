#include "service/propagation/graph/op_class.h"

#include <algorithm>

#include "service/ops/linalg/custom_calls.h"

namespace meshd::propagation {
namespace {

bool same_shapes(const Node& node) {
  const std::shared_ptr<const sharding::FactorRule>& rule = node.rule;
  return rule && std::equal(rule->operands.begin(), rule->operands.end(), rule->results.begin(), rule->results.end());
}

}  // namespace

bool is_elementwise(const Node& node) {
  if (node.kind == NodeKind::kConstraint) return true;
  if (node.kind != NodeKind::kOp) return false;
  switch (node.def->propagation.elementwise) {
    case ops::Elementwise::kByBody:
      return std::holds_alternative<ops::ScalarMath>(node.def->body);
    case ops::Elementwise::kAlways:
      return true;
    case ops::Elementwise::kSameShapes:
      return std::holds_alternative<ops::ScalarMath>(node.def->body) || same_shapes(node);
  }
  return false;
}

ops::Flow flow_of(const Node& node) {
  if (node.kind == NodeKind::kEdge || is_elementwise(node)) return ops::Flow::kPassThrough;
  if (node.kind != NodeKind::kOp) return ops::Flow::kOther;
  if (const ops::CustomCallDef* target = ops::find_custom_call(*node.op)) return target->flow;
  return node.def->propagation.flow;
}

bool is_constant(const Node& node) {
  if (node.kind != NodeKind::kOp || !node.operands.empty()) return false;
  return role_of(node) == ops::Structural::kConstant || node.def->free_result_layout;
}

bool is_broadcast(const Node& node) {
  return node.kind == NodeKind::kOp && node.def->propagation.flow == ops::Flow::kBroadcast;
}

bool keeps_constants(const Node& node) {
  return node.kind == NodeKind::kOp && (node.def->propagation.keeps_constants || is_elementwise(node));
}

}  // namespace meshd::propagation
