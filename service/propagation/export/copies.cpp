#include "service/propagation/export/copies.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

namespace meshd::propagation {
namespace {

std::string text_of(const AxisList& axes) {
  std::string out;
  for (const AxisRef& axis : axes) {
    out += fmt::format("{}:{}*{} ", axis.axis, axis.pre, axis.size);
  }
  return out;
}

std::string text_of(const OpenSharding& sharding) {
  std::string out = fmt::format("{}[", sharding.mesh);
  for (const sharding::DimSharding& dim : sharding.dims) out += text_of(dim.axes) + (dim.open ? "?," : ",");
  return fmt::format("{}]{}/{}{}", out, text_of(sharding.replicated), text_of(sharding.unreduced),
                     static_cast<int>(sharding.unreduced_kind));
}

/// Where any value has a sharding, those without one are fully open over its mesh.
std::string text_of(const Graph& graph, const std::vector<int>& tensors) {
  std::string out;
  int mesh = -1;
  for (const int tensor : tensors) {
    if (mesh < 0 && graph.sharding(tensor)) mesh = graph.sharding(tensor)->mesh;
  }
  if (mesh < 0) return "none";
  for (const int tensor : tensors) {
    OpenSharding sharding;
    if (graph.sharding(tensor)) {
      sharding = *graph.sharding(tensor);
    } else {
      sharding.mesh = mesh;
      sharding.dims.resize(graph.tensor(tensor).is_tensor() ? graph.tensor(tensor).type->dims().size() : 0);
      for (sharding::DimSharding& dim : sharding.dims) dim.open = true;
    }
    out += text_of(sharding) + ";";
  }
  return out;
}

class Unifier {
 public:
  explicit Unifier(Graph& graph) : graph_(graph) {}

  void run() {
    visit(0, -1);
    std::map<int, int> exported_at;
    for (size_t i = 0; i < exported_.size(); ++i) exported_at[exported_[i]] = static_cast<int>(i);
    std::vector<Frame> met = frames_;
    std::stable_sort(met.begin(), met.end(), [&](const Frame& a, const Frame& b) {
      const auto place = [&](int parent) { return parent < 0 ? -1 : exported_at.at(parent); };
      return place(a.parent) < place(b.parent);
    });
    std::map<std::string, int> first_of;
    for (const Frame& frame : met)
      first_of_[frame.node] = first_of.emplace(signature_of(graph_, frame.node), frame.node).first->second;
    // What is around a frame decides after it: the calls in there are those of the function that it is then.
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      if (first_of_.at(frame->node) == frame->node) continue;
      pairs_.clear();
      if (are_alike(frame->node, frame->node)) copies_.insert(copies_.end(), pairs_.begin(), pairs_.end());
    }
    // All at once: what is copied is what propagation found.
    std::vector<std::pair<std::optional<OpenSharding>, Origin>> found;
    for (const auto& [from, to] : copies_) {
      found.emplace_back(graph_.sharding(from), graph_.tensor(graph_.tensor(from).holder).origin);
    }
    for (size_t i = 0; i < copies_.size(); ++i) {
      Tensor& holder = graph_.tensor(graph_.tensor(copies_[i].second).holder);
      holder.sharding = found[i].first;
      holder.origin = found[i].second;
    }
  }

 private:
  struct Frame {
    int node;
    int parent;  ///< the frame around it, -1: @main
  };

  void visit(int block, int parent) {
    for (const int id : graph_.block(block).nodes) {
      const Node& node = graph_.node(id);
      if (node.erased) continue;
      const bool is_frame = node.kind == NodeKind::kFrame;
      if (is_frame) frames_.push_back({id, parent});
      for (const int inner : node.blocks) visit(inner, is_frame ? id : parent);
      if (is_frame) exported_.push_back(id);
    }
  }

  std::vector<int> live(int block) const {
    std::vector<int> out;
    for (const int id : graph_.block(block).nodes) {
      if (!graph_.node(id).erased) out.push_back(id);
    }
    return out;
  }

  /// Notes pairs of tensors inside of two nodes; false where their ops differ. A call is of the first copy.
  bool are_alike(int first, int second) {
    const Node& x = graph_.node(graph_.node(first).kind == NodeKind::kFrame ? first_of_.at(first) : first);
    const Node& y = graph_.node(second);
    if (x.blocks.size() != y.blocks.size()) return false;
    for (size_t k = 0; k < x.blocks.size(); ++k) {
      if (!blocks_are_alike(x.blocks[k], y.blocks[k])) return false;
    }
    return true;
  }

  bool blocks_are_alike(int first, int second) {
    if (!pair_up(graph_.block(first).arguments, graph_.block(second).arguments)) return false;
    const std::vector<int> a = live(first);
    const std::vector<int> b = live(second);
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      const Node& x = graph_.node(a[i]);
      const Node& y = graph_.node(b[i]);
      // The edge of a function's argument has the line of the call.
      if (x.kind != y.kind || x.def != y.def || (x.line != y.line && x.kind != NodeKind::kEdge)) return false;
      if (!are_alike(a[i], b[i]) || !pair_up(x.results, y.results)) return false;
    }
    return true;
  }

  bool pair_up(const std::vector<int>& a, const std::vector<int>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) pairs_.emplace_back(a[i], b[i]);
    return true;
  }

  Graph& graph_;
  std::vector<Frame> frames_;    ///< outer ones first
  std::vector<int> exported_;    ///< inner ones first
  std::map<int, int> first_of_;  ///< by frame: the first with its signature
  std::vector<std::pair<int, int>> pairs_;
  std::vector<std::pair<int, int>> copies_;  ///< from, to
};

}  // namespace

std::string signature_of(const Graph& graph, int frame_node) {
  const Node& node = graph.node(frame_node);
  const Block& body = graph.block(node.blocks[0]);
  return graph.module->inlined_calls[static_cast<size_t>(node.frame)].callee + "(" + text_of(graph, body.arguments) +
         ")->" + text_of(graph, graph.node(body.nodes.back()).operands);
}

void unify_copies(Graph& graph) { Unifier(graph).run(); }

}  // namespace meshd::propagation
