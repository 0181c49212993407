#include "service/propagation/graph/graph.h"

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

void Graph::set_sharding(int tensor_id, OpenSharding made, Origin origin) {
  Tensor& holder = tensor(tensor(tensor_id).holder);
  holder.sharding = std::move(made);
  holder.origin = origin;
}

void Graph::link(int node_id, int operand) {
  const int place = node(node_id).uses[static_cast<size_t>(operand)];
  Tensor& used = tensor(node(node_id).operands[static_cast<size_t>(operand)]);
  Link& made = links_[static_cast<size_t>(place)];
  made = {{node_id, operand}, used.newest_use, -1};
  if (used.newest_use >= 0) links_[static_cast<size_t>(used.newest_use)].newer = place;
  if (used.oldest_use < 0) used.oldest_use = place;
  used.newest_use = place;
  ++used.use_count;
}

void Graph::unlink(int node_id, int operand) {
  const Link gone = links_[static_cast<size_t>(node(node_id).uses[static_cast<size_t>(operand)])];
  Tensor& used = tensor(node(node_id).operands[static_cast<size_t>(operand)]);
  (gone.newer >= 0 ? links_[static_cast<size_t>(gone.newer)].older : used.newest_use) = gone.older;
  (gone.older >= 0 ? links_[static_cast<size_t>(gone.older)].newer : used.oldest_use) = gone.newer;
  --used.use_count;
}

void Graph::add_uses(int node_id) {
  const size_t count = node(node_id).operands.size();
  for (size_t i = 0; i < count; ++i) {
    node(node_id).uses.push_back(static_cast<int>(links_.size()));
    links_.emplace_back();
    link(node_id, static_cast<int>(i));
  }
}

void Graph::set_operand(int node_id, int operand, int tensor_id) {
  unlink(node_id, operand);
  node(node_id).operands[static_cast<size_t>(operand)] = tensor_id;
  link(node_id, operand);
}

void Graph::replace_uses(int from, int to, int except) {
  each_use(from, [&](const Use& use) {
    if (use.node != except) set_operand(use.node, use.operand, to);
    return true;
  });
}

void Graph::erase(int node_id) {
  Node& gone = node(node_id);
  gone.erased = true;
  for (size_t i = 0; i < gone.uses.size(); ++i) unlink(node_id, static_cast<int>(i));
  gone.uses.clear();
  // Removes its blocks too.
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
  return node.def == nullptr ? std::nullopt : ops::role_of(node.def->body);
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
  if (node.kind == NodeKind::kBarrier) return true;
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
