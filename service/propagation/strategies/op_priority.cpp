#include "service/propagation/strategies/op_priority.h"

#include <algorithm>

#include "service/propagation/graph/op_class.h"

namespace meshd::propagation {
namespace {

bool any_operand_is_shared(const Graph& graph, const Node& node) {
  return std::any_of(node.operands.begin(), node.operands.end(), [&](int operand) {
    return graph.tensor(operand).use_count != 1 && !graph.tensor(operand).is_scalar();
  });
}

Direction of_op(const Graph& graph, const Node& node, ops::Flow flow, int step) {
  const Direction not_forward = flow == ops::Flow::kBroadcast ? Direction::kBackward : Direction::kBoth;
  if (step >= 4) return Direction::kBoth;
  if (step == 3) return not_forward;
  if (flow != ops::Flow::kPassThrough && flow != ops::Flow::kPassThroughForward) return Direction::kNone;
  if (step == 0 && any_operand_is_shared(graph, node)) return Direction::kNone;
  return flow == ops::Flow::kPassThrough ? Direction::kBoth : Direction::kForward;
}

}  // namespace

std::vector<Direction> directions_in_step(const Graph& graph, const Node& node, int step) {
  const ops::Flow flow = flow_of(node);
  const Direction whole_op = of_op(graph, node, flow, step);
  std::vector<Direction> out;
  for (const sharding::Factor& factor : node.rule->factors) {
    Direction direction = whole_op;
    if (step >= 2 && factor.kind == sharding::FactorKind::kPassThrough) {
      direction = direction | (flow == ops::Flow::kBroadcast ? Direction::kBackward : Direction::kBoth);
    }
    out.push_back(factor.blocked ? Direction::kNone : direction);
  }
  return out;
}

}  // namespace meshd::propagation
