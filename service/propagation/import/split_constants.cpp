#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "service/propagation/graph/op_class.h"
#include "service/propagation/import/import_steps.h"

namespace meshd::propagation {
namespace {

/// Most nodes of one copy, which are copied by recursion.
constexpr int64_t kMostOfOne = 1000;
/// Of all copies together there are at most so many, and so many for each node of the program: readers of a long
/// computation of constants, each of them with a copy of its own, would make of a short text more than fits in memory.
constexpr int64_t kMostCopies = 20'000;
constexpr int64_t kCopiesOfNode = 4;

/// Splits one function: a body with the regions in it, but without the bodies of calls, which are functions of their
/// own.
class Splitter {
 public:
  /// `left`: the nodes that may still be copied. Who reads more than that shares what is there.
  Splitter(Graph& graph, int64_t& left) : graph_(graph), left_(left) {}

  /// True when the body holds nothing but what keeps constants constant.
  bool split(int block) {
    walk(block);
    remove_unused();
    place_clones();
    return only_constant_work_;
  }

 private:
  void walk(int block) {
    const std::vector<int> nodes = graph_.block(block).nodes;
    for (const int id : nodes) {
      if (graph_.node(id).kind == NodeKind::kFrame) {
        frame_keeps_[id] = Splitter(graph_, left_).split(graph_.node(id).blocks[0]);
      }
      visit(id);
      if (graph_.node(id).kind != NodeKind::kRegions) continue;
      const std::vector<int> inner = graph_.node(id).blocks;
      for (const int each : inner) walk(each);
    }
  }

  [[nodiscard]] bool keeps(int id) const {
    const Node& node = graph_.node(id);
    return node.kind == NodeKind::kFrame ? frame_keeps_.at(id) : keeps_constants(node);
  }

  [[nodiscard]] bool is_split(int tensor) const {
    const int node = graph_.tensor(tensor).node;
    return node >= 0 && kind_.count(node) != 0;
  }

  void visit(int id) {
    const Node& node = graph_.node(id);
    if (node.kind == NodeKind::kGroup) return;
    bool constant = is_constant(node);
    if (!constant && keeps(id)) {
      constant = true;
      for (const int operand : node.operands) {
        const int def = graph_.tensor(operand).node;
        const auto found = def >= 0 ? kind_.find(def) : kind_.end();
        if (found == kind_.end() || !found->second) constant = false;
      }
    }
    if (constant) {
      kind_[id] = true;
      constants_.push_back(id);
      return;
    }
    if (!keeps(id) && node.kind != NodeKind::kTerminator) only_constant_work_ = false;
    if (is_broadcast(node) && graph_.tensor(node.operands[0]).is_scalar()) {
      kind_[id] = false;
      scalar_broadcasts_.push_back(id);
      return;
    }
    for (size_t i = 0; i < graph_.node(id).operands.size(); ++i) {
      const int operand = graph_.node(id).operands[i];
      if (!is_split(operand) || graph_.tensor(operand).is_scalar()) continue;
      const int64_t most = std::min(left_, kMostOfOne);
      const int64_t count = count_copied(operand, most);
      if (count > most) continue;
      left_ -= count;
      std::unordered_map<int, int> copies;
      graph_.set_operand(id, static_cast<int>(i), copy(operand, copies));
    }
  }

  /// How many nodes lead to `tensor`, as copy() takes them; more than `most` are not counted.
  [[nodiscard]] int64_t count_copied(int tensor, int64_t most) const {
    std::unordered_set<int> seen;
    std::vector<int> open = {tensor};
    while (!open.empty() && static_cast<int64_t>(seen.size()) <= most) {
      const Tensor& next = graph_.tensor(open.back());
      open.pop_back();
      if (next.is_scalar() || next.node < 0 || !seen.insert(next.node).second) continue;
      const std::vector<int>& operands = graph_.node(next.node).operands;
      open.insert(open.end(), operands.begin(), operands.end());
    }
    return static_cast<int64_t>(seen.size());
  }

  /// A copy of `tensor` with all of the computation that leads to it, scalars left out: they are never sharded.
  int copy(int tensor, std::unordered_map<int, int>& copies) {
    if (graph_.tensor(tensor).is_scalar() || graph_.tensor(tensor).node < 0) return tensor;
    if (const auto found = copies.find(tensor); found != copies.end()) return found->second;
    const int original = graph_.tensor(tensor).node;
    std::vector<int> operands;
    const std::vector<int> old_operands = graph_.node(original).operands;
    for (const int operand : old_operands) operands.push_back(copy(operand, copies));
    const int made = clone(original, operands, copies, graph_.node(original).block);
    before_[original].push_back(made);
    copy_groups(original, tensor, copies);
    return copies.at(tensor);
  }

  void copy_groups(int original, int tensor, std::unordered_map<int, int>& copies) {
    for (const int group : groups_on(tensor)) {
      before_[original].push_back(clone(group, {copies.at(tensor)}, copies, graph_.node(original).block));
    }
  }

  const std::vector<int>& groups_on(int tensor) {
    const auto [found, is_new] = groups_.try_emplace(tensor);
    if (is_new) {
      graph_.each_use(tensor, [&](const Use& use) {
        if (graph_.node(use.node).kind == NodeKind::kGroup) found->second.push_back(use.node);
        return true;
      });
    }
    return found->second;
  }

  /// A copy of a node (with what is in it) that is in no list yet; its results go into `copies`.
  int clone(int original, std::vector<int> operands, std::unordered_map<int, int>& copies, int block) {
    Node node = graph_.node(original);
    node.is_copy = true;
    node.block = block;
    node.operands = std::move(operands);
    node.uses.clear();
    node.results.clear();
    node.blocks.clear();
    const int id = graph_.add_node(std::move(node));
    const std::vector<int> results = graph_.node(original).results;
    for (const int result : results) {
      const int made = clone_tensor(result, id, -1);
      graph_.node(id).results.push_back(made);
      copies[result] = made;
    }
    const std::vector<int> inner = graph_.node(original).blocks;
    for (const int each : inner) {
      const int body = clone_block(each, id, copies);
      graph_.node(id).blocks.push_back(body);
    }
    graph_.add_uses(id);
    return id;
  }

  int clone_tensor(int original, int node, int block) {
    const int made = graph_.add_tensor(*graph_.tensor(original).type, graph_.tensor(original).value, node, block);
    graph_.tensor(made).sharding = graph_.tensor(original).sharding;
    graph_.tensor(made).origin = graph_.tensor(original).origin;
    return made;
  }

  int clone_block(int original, int node, std::unordered_map<int, int>& copies) {
    const int body = graph_.add_block(node);
    const Block from = graph_.block(original);
    for (const int argument : from.arguments) {
      const int made = clone_tensor(argument, -1, body);
      graph_.block(body).arguments.push_back(made);
      copies[argument] = made;
    }
    for (const int inner : from.nodes) {
      if (graph_.node(inner).erased) continue;
      std::vector<int> operands;
      const std::vector<int> old_operands = graph_.node(inner).operands;
      for (const int operand : old_operands) {
        const auto found = copies.find(operand);
        operands.push_back(found == copies.end() ? operand : found->second);
      }
      const int made = clone(inner, std::move(operands), copies, body);
      graph_.block(body).nodes.push_back(made);
    }
    return body;
  }

  void remove_unused() {
    for (const int id : scalar_broadcasts_) remove_if_unused(id);
    for (size_t i = constants_.size(); i-- > 0;) remove_if_unused(constants_[i]);
  }

  void remove_if_unused(int id) {
    const std::vector<int> results = graph_.node(id).results;
    for (const int result : results) {
      if (graph_.any_use(result, [&](const Use& use) { return graph_.node(use.node).kind != NodeKind::kGroup; }))
        return;
    }
    for (const int result : results) {
      graph_.each_use(result, [&](const Use& use) {
        graph_.erase(use.node);
        return true;
      });
    }
    graph_.erase(id);
  }

  /// Inserts clones in front of their originals.
  void place_clones() {
    std::set<int> touched;
    for (const auto& [original, clones] : before_) touched.insert(graph_.node(original).block);
    for (const int block : touched) {
      std::vector<int> nodes;
      for (const int id : graph_.block(block).nodes) {
        if (const auto found = before_.find(id); found != before_.end()) {
          nodes.insert(nodes.end(), found->second.begin(), found->second.end());
        }
        nodes.push_back(id);
      }
      graph_.block(block).nodes = std::move(nodes);
    }
  }

  Graph& graph_;
  int64_t& left_;
  std::unordered_map<int, bool> kind_;  ///< node -> constant (true) or scalar broadcast (false)
  std::vector<int> constants_;          ///< in the order of the text
  std::vector<int> scalar_broadcasts_;
  std::map<int, bool> frame_keeps_;
  std::unordered_map<int, std::vector<int>> groups_;  ///< by tensor: the sharding_group ops that name it
  std::unordered_map<int, std::vector<int>> before_;  ///< clones inserted in front of a node
  bool only_constant_work_ = true;
};

}  // namespace

void split_constants(Graph& graph) {
  int64_t left = kMostCopies + kCopiesOfNode * static_cast<int64_t>(graph.nodes.size());
  Splitter(graph, left).split(0);
  graph.sweep();
}

}  // namespace meshd::propagation
