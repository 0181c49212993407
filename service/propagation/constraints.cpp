#include <algorithm>

#include "service/propagation/import_steps.h"

namespace meshd::propagation {
namespace {

class ConstraintApplier {
 public:
  explicit ConstraintApplier(Graph& graph) : graph_(graph) {}

  void visit(int block) {
    const std::vector<int> nodes = graph_.block(block).nodes;
    for (const int id : nodes) {
      const std::vector<int> inner = graph_.node(id).blocks;
      for (const int each : inner) visit(each);
      if (is_constraint(graph_, id)) {
        constraint(id);
      } else if (is_manual(graph_, id)) {
        manual(id);
      }
    }
  }

 private:
  [[nodiscard]] const Placement& asked(int constraint) const {
    return *graph_.placement(graph_.node(constraint).results[0]);
  }

  [[nodiscard]] bool is_asker(int node) const { return is_constraint(graph_, node) || is_manual(graph_, node); }

  [[nodiscard]] bool should_apply(int input, const Placement& placement) const {
    if (!graph_.tensor(input).is_tensor() || graph_.placement(input) || !placement.is_closed()) return false;
    const std::vector<Use>& uses = graph_.tensor(input).uses;
    return std::none_of(uses.begin(), uses.end(), [&](const Use& use) {
      if (is_constraint(graph_, use.node)) return asked(use.node) != placement;
      if (is_manual(graph_, use.node))
        return graph_.node(use.node).in_placements[static_cast<size_t>(use.operand)] != placement;
      return false;
    });
  }

  void constraint(int id) {
    redirect_behind_chain(id);
    const int input = graph_.node(id).operands[0];
    const Placement placement = asked(id);
    if (!should_apply(input, placement)) return;
    if (!graph_.is_edge_target(input)) {
      graph_.set_placement(input, placement, {OriginKind::kConstraint, graph_.node(id).line, 0});
      return;
    }
    graph_.place_behind(id, input);
    take_users(id, input, placement);
  }

  void manual(int id) {
    const size_t count = std::min(graph_.node(id).operands.size(), graph_.node(id).in_placements.size());
    for (size_t i = 0; i < count; ++i) {
      const int input = graph_.node(id).operands[i];
      const Placement placement = graph_.node(id).in_placements[i];
      if (!should_apply(input, placement)) continue;
      const Origin origin{OriginKind::kManual, graph_.node(id).line, 0};
      if (graph_.is_edge_target(input)) {
        take_users(add_constraint(graph_, input, placement, origin), input, placement);
      } else {
        graph_.set_placement(input, placement, origin);
      }
    }
  }

  /// The other targets of an edge stay free: users take the constraint's result in place of the edge's.
  void take_users(int id, int input, const Placement& placement) {
    graph_.replace_uses(input, graph_.node(id).results[0], id);
    if (placement.unreduced.empty()) return;
    // Unreduced axes do not propagate, so the input gets them here.
    Placement open;
    open.mesh = placement.mesh;
    open.dims.resize(placement.dims.size());
    for (sharding::DimSharding& dim : open.dims) dim.open = true;
    open.unreduced = placement.unreduced;
    open.unreduced_kind = placement.unreduced_kind;
    graph_.set_placement(input, std::move(open), {OriginKind::kConstraint, graph_.node(id).line, 0});
  }

  [[nodiscard]] bool has_asker(int tensor, int except) const {
    const std::vector<Use>& uses = graph_.tensor(tensor).uses;
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return use.node != except && is_asker(use.node); });
  }

  /// The last of two or more constraints in a row that nothing else looks at, or -1.
  [[nodiscard]] int tail_of_chain(int head) const {
    const int input = graph_.node(head).operands[0];
    const int def = graph_.tensor(input).node;
    if ((def >= 0 && is_constraint(graph_, def)) || graph_.placement(input) || has_asker(input, head)) return -1;
    int tail = head;
    while (true) {
      const std::vector<Use>& uses = graph_.tensor(graph_.node(tail).results[0]).uses;
      if (uses.size() != 1 || !is_constraint(graph_, uses[0].node)) break;
      tail = uses[0].node;
    }
    return tail == head || has_asker(graph_.node(tail).results[0], -1) ? -1 : tail;
  }

  void redirect_behind_chain(int head) {
    const int tail = tail_of_chain(head);
    if (tail < 0) return;
    const int input = graph_.node(head).operands[0];
    const int result = graph_.node(tail).results[0];
    const int block = graph_.node(tail).block;
    const std::vector<int>& order = graph_.block(block).nodes;
    const auto tail_at = std::find(order.begin(), order.end(), tail);
    std::vector<Use> uses = graph_.tensor(input).uses;
    std::reverse(uses.begin(), uses.end());
    for (const Use& use : uses) {
      const Node& user = graph_.node(use.node);
      if (use.node == head || user.block != block || std::find(tail_at, order.end(), use.node) == order.end()) continue;
      if (user.kind == NodeKind::kTerminator && graph_.block(block).node < 0) continue;  // what @main returns stays
      graph_.set_operand(use.node, use.operand, result);
    }
  }

  Graph& graph_;
};

}  // namespace

int add_constraint(Graph& graph, int tensor, Placement placement, Origin origin) {
  Node node;
  node.kind = NodeKind::kConstraint;
  node.line = origin.line;
  node.operands = {tensor};
  const int id = graph.add_node(std::move(node));
  const int result = graph.add_tensor(*graph.tensor(tensor).type, graph.tensor(tensor).value, id, -1);
  graph.node(id).results = {result};
  graph.add_uses(id);
  graph.place_behind(id, tensor);
  graph.set_placement(result, std::move(placement), origin);
  return id;
}

void apply_constraints(Graph& graph) { ConstraintApplier(graph).visit(0); }

}  // namespace meshd::propagation
