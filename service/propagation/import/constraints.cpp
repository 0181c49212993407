#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "service/propagation/import/import_steps.h"

namespace meshd::propagation {
namespace {

class ConstraintApplier {
 public:
  explicit ConstraintApplier(Graph& graph) : graph_(graph), order_(graph.nodes.size()) {
    for (const Block& block : graph.blocks) {
      for (size_t i = 0; i < block.nodes.size(); ++i) {
        order_[static_cast<size_t>(block.nodes[i])] = {static_cast<int64_t>(i), 0};
      }
    }
  }

  void run() {
    visit(0);
    for (const int block : changed_) rebuild(block);
  }

 private:
  void visit(int block) {
    for (const int id : graph_.block(block).nodes) {
      const std::vector<int> inner = graph_.node(id).blocks;
      for (const int each : inner) visit(each);
      if (is_constraint(graph_, id)) {
        constraint(id);
      } else if (is_manual(graph_, id)) {
        manual(id);
      }
    }
  }

  [[nodiscard]] const OpenSharding& asked(int constraint) const {
    return *graph_.sharding(graph_.node(constraint).results[0]);
  }

  [[nodiscard]] bool is_asker(int node) const { return is_constraint(graph_, node) || is_manual(graph_, node); }

  [[nodiscard]] bool should_apply(int input, const OpenSharding& sharding) const {
    if (!graph_.tensor(input).is_tensor() || graph_.sharding(input) || !sharding.is_closed()) return false;
    return !graph_.any_use(input, [&](const Use& use) {
      if (is_constraint(graph_, use.node)) return asked(use.node) != sharding;
      if (!is_manual(graph_, use.node)) return false;
      return graph_.node(use.node).in_shardings[static_cast<size_t>(use.operand)] != sharding;
    });
  }

  void constraint(int id) {
    redirect_behind_chain(id);
    const int input = graph_.node(id).operands[0];
    const OpenSharding sharding = asked(id);
    if (!should_apply(input, sharding)) return;
    if (!graph_.is_edge_target(input)) {
      graph_.set_sharding(input, sharding, {OriginKind::kConstraint, graph_.node(id).line, 0});
      return;
    }
    move_behind(id, input);
    take_users(id, input, sharding);
  }

  void manual(int id) {
    const size_t count = std::min(graph_.node(id).operands.size(), graph_.node(id).in_shardings.size());
    for (size_t i = 0; i < count; ++i) {
      const int input = graph_.node(id).operands[i];
      const OpenSharding sharding = graph_.node(id).in_shardings[i];
      if (!should_apply(input, sharding)) continue;
      const Origin origin{OriginKind::kManual, graph_.node(id).line, 0};
      if (!graph_.is_edge_target(input)) {
        graph_.set_sharding(input, sharding, origin);
        continue;
      }
      const int made = make_constraint(graph_, input, sharding, origin);
      move_behind(made, input);
      take_users(made, input, sharding);
    }
  }

  /// The other targets of an edge stay free: users take the constraint's result in place of the edge's.
  void take_users(int id, int input, const OpenSharding& sharding) {
    graph_.replace_uses(input, graph_.node(id).results[0], id);
    if (sharding.unreduced.empty()) return;
    // Unreduced axes do not propagate, so the input gets them here.
    OpenSharding open;
    open.mesh = sharding.mesh;
    open.dims.resize(sharding.dims.size());
    for (sharding::DimSharding& dim : open.dims) dim.open = true;
    open.unreduced = sharding.unreduced;
    open.unreduced_kind = sharding.unreduced_kind;
    graph_.set_sharding(input, std::move(open), {OriginKind::kConstraint, graph_.node(id).line, 0});
  }

  [[nodiscard]] bool has_asker(int tensor, int except) const {
    return graph_.any_use(tensor, [&](const Use& use) { return use.node != except && is_asker(use.node); });
  }

  /// The only user of a constraint's result where that is a constraint itself, or -1.
  [[nodiscard]] int next_in_chain(int constraint) const {
    const int result = graph_.node(constraint).results[0];
    int next = -1;
    if (graph_.tensor(result).use_count != 1) return next;
    graph_.each_use(result, [&](const Use& use) {
      if (is_constraint(graph_, use.node)) next = use.node;
      return true;
    });
    return next;
  }

  /// The last of two or more constraints in a row that nothing else reads, or -1.
  [[nodiscard]] int tail_of_chain(int head) const {
    const int input = graph_.node(head).operands[0];
    const int def = graph_.tensor(input).node;
    if ((def >= 0 && is_constraint(graph_, def)) || graph_.sharding(input) || has_asker(input, head)) return -1;
    int tail = head;
    for (int next = next_in_chain(tail); next >= 0; next = next_in_chain(tail)) tail = next;
    return tail == head || has_asker(graph_.node(tail).results[0], -1) ? -1 : tail;
  }

  void redirect_behind_chain(int head) {
    const int tail = tail_of_chain(head);
    if (tail < 0) return;
    const int block = graph_.node(tail).block;
    graph_.each_use(graph_.node(head).operands[0], [&](const Use& use) {
      const Node& user = graph_.node(use.node);
      const bool behind =
          user.block == block && order_[static_cast<size_t>(use.node)] > order_[static_cast<size_t>(tail)];
      // What @main returns stays.
      const bool returned = user.kind == NodeKind::kTerminator && graph_.block(block).node < 0;
      if (use.node != head && behind && !returned) {
        graph_.set_operand(use.node, use.operand, graph_.node(tail).results[0]);
      }
      return true;
    });
  }

  /// Places a constraint right behind the birth of an edge's target, in front of those that came there before.
  void move_behind(int id, int tensor) {
    const Tensor& born = graph_.tensor(tensor);
    Node& node = graph_.node(id);
    if (node.block >= 0) changed_.insert(node.block);
    node.block = born.node >= 0 ? graph_.node(born.node).block : born.block;
    changed_.insert(node.block);
    const int64_t base = born.node >= 0 ? order_[static_cast<size_t>(born.node)].first : -1;
    order_.resize(graph_.nodes.size());
    order_[static_cast<size_t>(id)] = {base, kBehind - ++moved_count_};
    moved_[node.block].push_back(id);
  }

  /// Sorts a block whose nodes moved.
  void rebuild(int block) {
    std::vector<int> nodes;
    for (const int id : graph_.block(block).nodes) {
      if (graph_.node(id).block == block && order_[static_cast<size_t>(id)].second == 0) nodes.push_back(id);
    }
    for (const int id : moved_[block]) {
      if (graph_.node(id).block == block) nodes.push_back(id);
    }
    std::sort(nodes.begin(), nodes.end(),
              [&](int a, int b) { return order_[static_cast<size_t>(a)] < order_[static_cast<size_t>(b)]; });
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    graph_.block(block).nodes = std::move(nodes);
  }

  static constexpr int64_t kBehind = int64_t{1} << 40;

  Graph& graph_;
  /// Position of a node in its block; the second number orders nodes that moved behind a position.
  std::vector<std::pair<int64_t, int64_t>> order_;
  std::map<int, std::vector<int>> moved_;  ///< by block
  std::set<int> changed_;
  int64_t moved_count_ = 0;
};

}  // namespace

int make_constraint(Graph& graph, int tensor, OpenSharding sharding, Origin origin) {
  Node node;
  node.kind = NodeKind::kConstraint;
  node.line = origin.line;
  node.operands = {tensor};
  const int id = graph.add_node(std::move(node));
  const int result = graph.add_tensor(*graph.tensor(tensor).type, graph.tensor(tensor).value, id, -1);
  graph.node(id).results = {result};
  graph.add_uses(id);
  graph.set_sharding(result, std::move(sharding), origin);
  return id;
}

void apply_constraints(Graph& graph) { ConstraintApplier(graph).run(); }

}  // namespace meshd::propagation
