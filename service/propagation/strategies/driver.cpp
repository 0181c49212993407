#include "service/propagation/strategies/driver.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "service/core/error.h"
#include "service/propagation/graph/manual.h"
#include "service/propagation/graph/op_class.h"
#include "service/propagation/strategies/op_priority.h"
#include "service/propagation/strategies/user_priority.h"

namespace meshd::propagation {
namespace {

/// Visits for each node and pass beyond which shardings are taken to go round in circles.
constexpr int64_t kVisitsPerNode = 64;
/// Every priority is a round over the whole program.
constexpr size_t kMaxPriorities = 64;

using RuleRef = std::shared_ptr<const sharding::FactorRule>;

sharding::FactorRule identity_rule(const tensor::Dims& dims, size_t operand_count) {
  sharding::FactorRuleBuilder builder(std::vector<tensor::Dims>(operand_count, dims), {dims});
  return builder.pointwise().build();
}

/// One run of a program through all rounds.
class Driver {
 public:
  Driver(Graph& graph, const Groups& groups) : graph_(graph), groups_(groups) {}

  void all_steps() {
    for (int step = 0; step < kStepCount; ++step) {
      step_ = step;
      function_results();
      if (!in_circles_) one_pass();
      function_results();
    }
  }

 private:
  /// A tensor of a visit: its current sharding, and where the new one is written. `tensor` < 0: a result of @main.
  struct Side {
    int tensor = -1;
    int result = -1;
    std::optional<OpenSharding> transformed;  ///< what an edge at a border shows instead of what it holds
    const OpenSharding* sharding = nullptr;
  };

  // The worklist, as MLIR's greedy rewriter keeps it: last in, first out, each node once.

  void queue_all(int block, std::vector<int>& order) const {
    for (const int id : graph_.block(block).nodes) {
      order.push_back(id);
      for (const int inner : graph_.node(id).blocks) queue_all(inner, order);
    }
  }

  /// Every node once, top down, and again whatever a change may concern. Shardy makes one pass in each step, so what
  /// its notifications miss (see notify_users) waits for the next step, or stays.
  void one_pass() {
    graph_.sweep();
    std::vector<int> order;
    queue_all(0, order);
    for (size_t i = order.size(); i-- > 0;) push(order[i]);
    int64_t left = static_cast<int64_t>(order.size() + 16) * kVisitsPerNode;
    while (!worklist_.empty()) {
      const int id = worklist_.back();
      worklist_.pop_back();
      graph_.node(id).queued = false;
      if (graph_.node(id).erased) continue;
      if (--left < 0) in_circles_ = true;
      if (in_circles_) continue;  // drains the list
      if (is_dead(id)) {
        drop(id);
      } else {
        visit(id);
      }
    }
  }

  void push(int id) {
    Node& node = graph_.node(id);
    if (node.queued || node.erased) return;
    node.queued = true;
    worklist_.push_back(id);
  }

  [[nodiscard]] bool is_dead(int id) const {
    const std::vector<int>& results = graph_.node(id).results;
    return !results.empty() &&
           std::all_of(results.begin(), results.end(), [&](int t) { return graph_.tensor(t).use_count == 0; }) &&
           is_pure(graph_, id);
  }

  void drop(int id) {
    const std::vector<int> operands = graph_.node(id).operands;
    for (const int operand : operands) {
      const int def = graph_.tensor(operand).node;
      if (def < 0) continue;
      // MLIR visits the definition of an operand again, unless two other ops use it.
      int other = -1;
      const bool has_two = graph_.any_use(operand, [&](const Use& use) {
        if (use.node == id || use.node == other) return false;
        return std::exchange(other, use.node) >= 0;
      });
      if (!has_two) push(def);
    }
    graph_.erase(id);
  }

  // What one node does.

  void visit(int id) {
    switch (graph_.node(id).kind) {
      case NodeKind::kEdge:
        return visit_edge(id);
      case NodeKind::kOp:
      case NodeKind::kConstraint:
      case NodeKind::kBarrier:
        return visit_op(id);
      case NodeKind::kFrame:
      case NodeKind::kRegions:
      case NodeKind::kGroup:
      case NodeKind::kTerminator:
        return;
    }
  }

  bool any_known(const std::vector<int>& tensors) const {
    return std::any_of(tensors.begin(), tensors.end(), [&](int t) { return graph_.sharding(t).has_value(); });
  }

  [[nodiscard]] Side side(int tensor) const {
    Side out;
    out.tensor = tensor;
    const std::optional<OpenSharding>& sharding = graph_.sharding(tensor);
    if (sharding) out.sharding = &*sharding;
    return out;
  }

  void visit_op(int id) {
    Node& node = graph_.node(id);
    if (!node.rule_known) find_rule(id);
    if (!node.rule || (!any_known(node.operands) && !any_known(node.results))) return;
    std::vector<Direction> directions;
    if (node.kind == NodeKind::kBarrier) {
      const std::string allowed = ir::string_or(node.op->attributes, "allowed_direction", "NONE");
      const Direction direction = allowed == "BOTH"       ? Direction::kBoth
                                  : allowed == "FORWARD"  ? Direction::kForward
                                  : allowed == "BACKWARD" ? Direction::kBackward
                                                          : Direction::kNone;
      directions.assign(node.rule->factors.size(), direction);
    } else {
      directions = directions_in_step(graph_, node, step_);
    }
    std::vector<Side> operands;
    std::vector<Side> results;
    for (const int tensor : node.operands) operands.push_back(side(tensor));
    for (const int tensor : node.results) results.push_back(side(tensor));
    const RuleRef rule = node.rule;
    propagate(id, *rule, directions, is_elementwise(node), operands, results);
  }

  void visit_edge(int id) {
    const Node& node = graph_.node(id);
    const int result = node.results[0];
    std::vector<Side> operands;
    for (const Use& source : node.sources) {
      operands.push_back(side(graph_.node(source.node).operands[static_cast<size_t>(source.operand)]));
    }
    std::vector<Side> results = {side(result)};
    if (results[0].sharding && node.border != Border::kNone) {
      results[0].transformed = node.border == Border::kInto
                                   ? with_free_axes(*node.outer, *results[0].sharding, node.manual_axes)
                                   : without_manual_axes(*results[0].sharding, node.manual_axes);
      results[0].sharding = &*results[0].transformed;
    }
    if (!node.rule) {
      graph_.node(id).rule = interned(identity_rule(graph_.tensor(result).type->dims(), node.sources.size()));
    }
    const RuleRef rule = graph_.node(id).rule;
    propagate(id, *rule, directions_in_step(graph_, node, step_), false, operands, results);
  }

  void function_results() {
    if (graph_.block(0).nodes.empty()) return;
    const int terminator = graph_.block(0).nodes.back();
    if (graph_.node(terminator).kind != NodeKind::kTerminator) return;
    const std::vector<int> returned = graph_.node(terminator).operands;
    for (size_t i = 0; i < returned.size() && i < graph_.results.size(); ++i) {
      if (!graph_.tensor(returned[i]).is_tensor()) continue;
      Side result;
      result.result = static_cast<int>(i);
      if (graph_.results[i].sharding) result.sharding = &*graph_.results[i].sharding;
      const sharding::FactorRule rule = identity_rule(graph_.tensor(returned[i]).type->dims(), 1);
      std::vector<Side> operands = {side(returned[i])};
      std::vector<Side> results = {result};
      const std::vector<Direction> both(rule.factors.size(), Direction::kBoth);
      propagate(-1, rule, both, false, operands, results);
    }
  }

  // Rules.

  RuleRef interned(sharding::FactorRule rule) {
    RuleRef& known = rules_[sharding::to_sdy(rule)];
    if (!known) known = std::make_shared<const sharding::FactorRule>(std::move(rule));
    return known;
  }

  void find_rule(int id) {
    Node& node = graph_.node(id);
    node.rule_known = true;
    if (node.kind != NodeKind::kOp) {
      if (node.kind == NodeKind::kConstraint && !is_constraint(graph_, id)) return;  // nothing passes an sdy.reshard
      if (graph_.tensor(node.operands[0]).is_tensor()) {
        node.rule = interned(identity_rule(graph_.tensor(node.operands[0]).type->dims(), 1));
      }
      return;
    }
    // Ops that take or give tokens have no rule.
    const auto usable = [&](int t) { return graph_.tensor(t).is_tensor(); };
    if (!std::all_of(node.operands.begin(), node.operands.end(), usable)) return;
    if (!std::all_of(node.results.begin(), node.results.end(), usable)) return;
    std::vector<ir::Type> operands;
    std::vector<ir::Type> results;
    std::vector<const ir::Op*> definitions;
    for (const int t : node.operands) {
      operands.push_back(*graph_.tensor(t).type);
      const int def = graph_.tensor(t).node;
      definitions.push_back(def >= 0 ? graph_.node(def).op : nullptr);
    }
    for (const int t : node.results) results.push_back(*graph_.tensor(t).type);
    ops::OpView view;
    view.operands = operands;
    view.results = results;
    view.attributes = &node.op->attributes;
    view.regions = node.op->regions;
    view.function = graph_.function;
    view.location = &node.op->location;
    view.op = node.op;
    view.definitions = definitions;
    std::optional<sharding::FactorRule> rule = ops::rule_of(*node.def, view);
    if (!rule || rule->operands.size() != operands.size() || rule->results.size() != results.size()) return;
    node.rule = interned(std::move(*rule));
  }

  // Growing.

  /// Row of the mesh that all known shardings are over, or -1.
  [[nodiscard]] int common_mesh(const std::vector<Side>& operands, const std::vector<Side>& results) const {
    int common = -1;
    for (const auto* sides : {&operands, &results}) {
      for (const Side& each : *sides) {
        if (each.sharding == nullptr) continue;
        const int row = each.sharding->mesh;
        if (graph_.meshes.mesh(row).is_empty()) continue;
        if (common < 0) common = row;
        if (common != row) return -1;
      }
    }
    return common >= 0 && graph_.meshes.mesh(common).is_maximal() ? -1 : common;
  }

  void propagate(int id, const sharding::FactorRule& rule, const std::vector<Direction>& directions, bool elementwise,
                 std::vector<Side>& operands, std::vector<Side>& results) {
    const auto is_none = [](Direction d) { return d == Direction::kNone; };
    if (std::all_of(directions.begin(), directions.end(), is_none)) return;
    const int row = common_mesh(operands, results);
    if (row < 0) return;
    const mesh::Mesh& mesh = graph_.meshes.mesh(row);
    Projection projection;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!fits(operands[i], rule.operands[i])) return;
      projection.operands.push_back(project(rule.operands[i], operands[i].sharding, rule, mesh));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!fits(results[i], rule.results[i])) return;
      projection.results.push_back(project(rule.results[i], results[i].sharding, rule, mesh));
    }
    const Grown grown = grow(projection, rule, directions, elementwise, mesh);
    std::vector<std::pair<const Side*, OpenSharding>> updates;
    const auto note = [&](const Side& each, const TensorProjection& tensor, const sharding::TensorFactors& factors) {
      OpenSharding made = unproject(tensor, factors, rule, row, mesh);
      if (each.sharding) made.unreduced_kind = each.sharding->unreduced_kind;
      if (each.sharding ? made == *each.sharding : made.has_no_axes()) return;
      updates.emplace_back(&each, std::move(made));
    };
    for (size_t i = 0; i < operands.size(); ++i) {
      if (grown.operands[i]) note(operands[i], projection.operands[i], rule.operands[i]);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (grown.results[i]) note(results[i], projection.results[i], rule.results[i]);
    }
    for (auto& [each, made] : updates) update(id, *each, std::move(made));
  }

  static bool fits(const Side& each, const sharding::TensorFactors& factors) {
    return each.sharding == nullptr || each.sharding->dims.size() == factors.size();
  }

  void update(int id, const Side& each, OpenSharding made) {
    const Origin origin{OriginKind::kRule, id >= 0 ? graph_.node(id).line : 0, 0};
    if (each.tensor < 0) {
      graph_.results[static_cast<size_t>(each.result)] = {std::move(made), origin};
      return;
    }
    const int holder = graph_.tensor(each.tensor).holder;
    if (id >= 0 && graph_.node(id).kind == NodeKind::kEdge && graph_.node(id).results[0] == holder &&
        is_target(id, each)) {
      const Node& edge = graph_.node(id);
      if (edge.border == Border::kInto) made = without_manual_axes(std::move(made), edge.manual_axes);
      if (edge.border == Border::kOutOf) made = with_free_axes(*edge.outer, made, edge.manual_axes);
    }
    graph_.set_sharding(holder, made, origin);
    notify(holder, id);
    for (const int member : groups_.members(holder)) {
      if (member == holder) continue;
      graph_.set_sharding(member, made, {OriginKind::kGroup, origin.line, 0});
      notify(member, id);
    }
  }

  /// An edge's own result, not a source that happens to be held by the same edge.
  [[nodiscard]] bool is_target(int id, const Side& each) const { return graph_.node(id).results[0] == each.tensor; }

  /// Queues the definition and users of a tensor whose sharding changed.
  void notify(int tensor, int self) {
    if (self < 0) return;  // results of @main are propagated outside of passes
    const Tensor& changed = graph_.tensor(tensor);
    if (changed.node >= 0) {
      if (graph_.node(changed.node).kind == NodeKind::kEdge) {
        for (const int target : graph_.node(changed.node).other_targets) notify_users(target, self);
      }
      notify_node(changed.node, self);
    }
    notify_users(tensor, self);
  }

  void notify_users(int tensor, int self) {
    graph_.each_use(tensor, [&](const Use& use) {
      const Node& user = graph_.node(use.node);
      // Of a call or a manual computation Shardy finds the op itself here, not the edge of its operand.
      if (user.kind == NodeKind::kFrame || is_manual(graph_, use.node)) return true;
      const int edge = user.edges.empty() ? -1 : user.edges[static_cast<size_t>(use.operand)];
      notify_node(edge >= 0 ? edge : use.node, self);
      return true;
    });
  }

  void notify_node(int id, int self) {
    if (id != self) push(id);
  }

  Graph& graph_;
  const Groups& groups_;
  std::vector<int> worklist_;
  std::unordered_map<std::string, RuleRef> rules_;
  int step_ = 0;
  bool in_circles_ = false;  ///< nothing more is tried
};

}  // namespace

void run_rounds(Graph& graph, const Groups& groups) {
  const std::vector<PriorityRound> rounds = take_priorities(graph);
  if (rounds.size() > kMaxPriorities) {
    throw core::Error(
        "unsupported_attribute",
        fmt::format("shardings have {} different priorities, at most {} are supported", rounds.size(), kMaxPriorities));
  }
  Driver driver(graph, groups);
  driver.all_steps();
  for (const PriorityRound& round : rounds) {
    enter_round(graph, round);
    driver.all_steps();
  }
}

}  // namespace meshd::propagation
