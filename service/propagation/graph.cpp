#include "service/propagation/graph.h"

#include <algorithm>

namespace meshd::propagation {

int Graph::add_tensor(const ir::Type& type, ir::ValueId value, int node_id, int block_id) {
  const int id = static_cast<int>(tensors.size());
  Tensor& made = tensors.emplace_back();
  made.type = &type;
  made.holder = id;
  made.node = node_id;
  made.block = block_id;
  made.value = value;
  return id;
}

int Graph::add_node(Node made) {
  nodes.push_back(std::move(made));
  return static_cast<int>(nodes.size()) - 1;
}

int Graph::add_block(int node_id) {
  blocks.push_back({node_id, {}, {}});
  return static_cast<int>(blocks.size()) - 1;
}

void Graph::set_placement(int tensor_id, Placement made, Origin origin) {
  Tensor& holder = tensor(tensor(tensor_id).holder);
  holder.placement = std::move(made);
  holder.origin = origin;
}

void Graph::add_uses(int node_id) {
  const std::vector<int>& operands = node(node_id).operands;
  for (size_t i = 0; i < operands.size(); ++i) tensor(operands[i]).uses.push_back({node_id, static_cast<int>(i)});
}

void Graph::set_operand(int node_id, int operand, int tensor_id) {
  int& slot = node(node_id).operands[static_cast<size_t>(operand)];
  std::vector<Use>& old = tensor(slot).uses;
  old.erase(std::find(old.begin(), old.end(), Use{node_id, operand}));
  slot = tensor_id;
  tensor(tensor_id).uses.push_back({node_id, operand});
}

void Graph::replace_uses(int from, int to, int except) {
  std::vector<Use> kept;
  std::vector<Use> moved;
  for (const Use& use : tensor(from).uses) (use.node == except ? kept : moved).push_back(use);
  for (size_t i = moved.size(); i-- > 0;) {
    node(moved[i].node).operands[static_cast<size_t>(moved[i].operand)] = to;
    tensor(to).uses.push_back(moved[i]);
  }
  tensor(from).uses = std::move(kept);
}

void Graph::erase(int node_id) {
  Node& gone = node(node_id);
  gone.erased = true;
  for (size_t i = 0; i < gone.operands.size(); ++i) {
    std::vector<Use>& uses = tensor(gone.operands[i]).uses;
    const auto it = std::find(uses.begin(), uses.end(), Use{node_id, static_cast<int>(i)});
    if (it != uses.end()) uses.erase(it);
  }
  // What stands inside goes with it.
  for (const int block_id : gone.blocks) {
    for (const int inner : block(block_id).nodes) {
      if (!node(inner).erased) erase(inner);
    }
  }
}

void Graph::place_behind(int node_id, int tensor_id) {
  const Tensor& born = tensor(tensor_id);
  const int target = born.node >= 0 ? node(born.node).block : born.block;
  if (node(node_id).block >= 0) {
    std::vector<int>& old = block(node(node_id).block).nodes;
    const auto it = std::find(old.begin(), old.end(), node_id);
    if (it != old.end()) old.erase(it);
  }
  node(node_id).block = target;
  std::vector<int>& list = block(target).nodes;
  auto at = list.begin();
  if (born.node >= 0) at = std::find(list.begin(), list.end(), born.node) + 1;
  list.insert(at, node_id);
}

void Graph::sweep() {
  for (Block& each : blocks) {
    each.nodes.erase(std::remove_if(each.nodes.begin(), each.nodes.end(), [&](int id) { return node(id).erased; }),
                     each.nodes.end());
  }
}

std::optional<ops::Structural> role_of(const Node& node) {
  if (node.def == nullptr) return std::nullopt;
  const auto* role = std::get_if<ops::Structural>(&node.def->body);
  return role ? std::optional(*role) : std::nullopt;
}

bool is_pure(const Graph& graph, int node_id) {
  const Node& node = graph.node(node_id);
  if (node.kind == NodeKind::kRegions) {
    if (is_manual(graph, node_id)) return false;
    for (const int block : node.blocks) {
      for (const int inner : graph.block(block).nodes) {
        const Node& each = graph.node(inner);
        if (!each.erased && each.kind != NodeKind::kTerminator && !is_pure(graph, inner)) return false;
      }
    }
    return true;
  }
  if (node.kind != NodeKind::kOp) return false;
  ops::OpView view;
  view.attributes = &node.op->attributes;
  view.location = &node.op->location;
  return !ops::has_effect(*node.def, view);
}

bool is_constraint(const Graph& graph, int node_id) {
  const Node& node = graph.node(node_id);
  return node.kind == NodeKind::kConstraint &&
         (node.op == nullptr || role_of(node) == ops::Structural::kShardingConstraint);
}

bool is_manual(const Graph& graph, int node_id) {
  return role_of(graph.node(node_id)) == ops::Structural::kManualComputation;
}

}  // namespace meshd::propagation
