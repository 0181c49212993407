#include <algorithm>

#include "service/propagation/graph/manual.h"
#include "service/propagation/import/import_steps.h"

namespace meshd::propagation {
namespace {

class EdgeAdder {
 public:
  explicit EdgeAdder(Graph& graph) : graph_(graph) {}

  void run() {
    visit(0);
    // Shardy creates the ops that represent calls last, so their uses are the newest.
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const int id = static_cast<int>(i);
      if (graph_.node(id).kind != NodeKind::kFrame || graph_.node(id).erased) continue;
      for (size_t operand = 0; operand < graph_.node(id).operands.size(); ++operand) {
        graph_.set_operand(id, static_cast<int>(operand), graph_.node(id).operands[operand]);
      }
    }
  }

 private:
  void visit(int block) {
    const std::vector<int> nodes = graph_.block(block).nodes;
    std::vector<int> with_edges;
    for (const int id : nodes) {
      const std::vector<int> inner = graph_.node(id).blocks;
      for (const int each : inner) visit(each);
      with_edges.push_back(id);
      behind_results(id, with_edges);
      in_body(id);
    }
    // Edges of this block's own arguments are inserted in front by in_body of its owner, later.
    graph_.block(block).nodes = std::move(with_edges);
  }

  /// A node for the edge of `owner`, in no list yet; users of the owner use its result.
  int make(int owner, int block, int line) {
    Node node;
    node.kind = NodeKind::kEdge;
    node.block = block;
    node.line = line;
    node.operands = {owner};
    const int id = graph_.add_node(std::move(node));
    const int result = graph_.add_tensor(*graph_.tensor(owner).type, graph_.tensor(owner).value, id, -1);
    graph_.node(id).results = {result};
    graph_.replace_uses(owner, result, -1);
    graph_.add_uses(id);
    graph_.tensor(result).sharding = graph_.tensor(owner).sharding;
    graph_.tensor(result).origin = graph_.tensor(owner).origin;
    graph_.tensor(owner).holder = result;
    return id;
  }

  void add_source(int edge, int node, size_t operand) {
    graph_.node(edge).sources.push_back({node, static_cast<int>(operand)});
    std::vector<int>& edges = graph_.node(node).edges;
    edges.resize(graph_.node(node).operands.size(), -1);
    edges[operand] = edge;
  }

  [[nodiscard]] int terminator(int block) const { return graph_.block(block).nodes.back(); }

  void behind_results(int id, std::vector<int>& list) {
    const NodeKind kind = graph_.node(id).kind;
    const std::optional<ops::Structural> role = role_of(graph_.node(id));
    if (kind != NodeKind::kFrame && (kind != NodeKind::kRegions || role == ops::Structural::kIf)) return;
    const bool manual = is_manual(graph_, id);
    const std::vector<int> results = graph_.node(id).results;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!graph_.tensor(results[i]).is_tensor()) continue;
      if (manual && i < graph_.node(id).out_shardings.size()) set_outer_result(id, results[i], i);
      const int edge = make(results[i], graph_.node(id).block, graph_.node(id).line);
      if (manual) {
        Node& node = graph_.node(edge);
        node.border = Border::kOutOf;
        node.manual_axes = graph_.node(id).manual_axes;
        node.outer = graph_.tensor(results[i]).sharding;
      }
      list.push_back(edge);
      sources_of_result(edge, id, i, role);
    }
  }

  void set_outer_result(int id, int result, size_t i) {
    const Origin origin{OriginKind::kManual, graph_.node(id).line, 0};
    graph_.set_sharding(result, with_all_manual_axes(graph_.node(id).out_shardings[i], graph_.node(id).manual_axes),
                        origin);
    graph_.node(id).out_shardings[i] = *graph_.tensor(result).sharding;
  }

  void sources_of_result(int edge, int id, size_t i, std::optional<ops::Structural> role) {
    if (role == ops::Structural::kWhile || role == ops::Structural::kOptimizationBarrier) add_source(edge, id, i);
    const std::vector<int> blocks = graph_.node(id).blocks;
    const size_t first = role == ops::Structural::kWhile ? 1 : 0;  // a loop's condition returns no carried value
    for (size_t b = first; b < blocks.size(); ++b) add_source(edge, terminator(blocks[b]), i);
    if (role != ops::Structural::kWhile) return;
    for (const int block : blocks) {
      const int argument = graph_.block(block).arguments[i];
      graph_.tensor(argument).holder = graph_.node(edge).results[0];
      graph_.node(edge).other_targets.push_back(argument);
    }
  }

  /// Edges of the arguments of a call's or manual computation's body.
  void in_body(int id) {
    const bool manual = is_manual(graph_, id);
    if (graph_.node(id).kind != NodeKind::kFrame && !manual) return;
    const int body = graph_.node(id).blocks[0];
    const std::vector<int> arguments = graph_.block(body).arguments;
    std::vector<int> list;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!graph_.tensor(arguments[i]).is_tensor()) continue;
      std::optional<OpenSharding> outer;
      if (manual && i < graph_.node(id).in_shardings.size()) {
        outer = with_all_manual_axes(graph_.node(id).in_shardings[i], graph_.node(id).manual_axes);
        graph_.node(id).in_shardings[i] = *outer;
        const Origin origin{OriginKind::kManual, graph_.node(id).line, 0};
        graph_.set_sharding(arguments[i], without_manual_axes(*outer, graph_.node(id).manual_axes), origin);
      }
      const int edge = make(arguments[i], body, graph_.node(id).line);
      if (manual) {
        graph_.node(edge).border = Border::kInto;
        graph_.node(edge).manual_axes = graph_.node(id).manual_axes;
        graph_.node(edge).outer = std::move(outer);
      }
      list.push_back(edge);
      add_source(edge, id, i);
    }
    std::vector<int>& nodes = graph_.block(body).nodes;
    nodes.insert(nodes.begin(), list.begin(), list.end());
  }

  Graph& graph_;
};

}  // namespace

void add_edges(Graph& graph) { EdgeAdder(graph).run(); }

}  // namespace meshd::propagation
