#include <algorithm>

#include "service/ops/collective/sdy_collectives.h"
#include "service/propagation/graph/graph.h"

namespace meshd::propagation {
namespace {

const std::vector<sharding::TensorSharding>* shardings_of(const ir::AttributeList& attributes, std::string_view name) {
  const ir::Attribute* attribute = ir::find(attributes, name);
  const auto* value = attribute ? attribute->as<ir::ShardingAttr>() : nullptr;
  return value ? &value->shardings : nullptr;
}

class Builder {
 public:
  Builder(const ir::Module& module, const Options& options) : options_(options) {
    graph_.module = &module;
    graph_.function = &module.main();
    tensor_of_.assign(graph_.function->values.size(), -1);
  }

  Graph build() {
    const ir::Function& main = *graph_.function;
    for (const ir::NamedMesh& mesh : graph_.module->meshes) graph_.meshes.intern(mesh.name, mesh.mesh);
    const int body = graph_.add_block(-1);
    for (size_t i = 0; i < main.body.arguments.size(); ++i) {
      const int id = argument(body, main.body.arguments[i]);
      const auto& seed = i < options_.argument_seeds.size() ? options_.argument_seeds[i] : std::nullopt;
      const auto& given = seed ? seed : main.arguments[i].sharding;
      if (given)
        graph_.set_sharding(id, graph_.meshes.read(*given), {OriginKind::kArgument, 0, static_cast<int32_t>(i)});
    }
    for (size_t i = 0; i < main.results.size(); ++i) {
      FunctionResult& result = graph_.results.emplace_back();
      const auto& seed = i < options_.result_seeds.size() ? options_.result_seeds[i] : std::nullopt;
      const auto& given = seed ? seed : main.results[i].sharding;
      if (!given) continue;
      result.sharding = graph_.meshes.read(*given);
      result.origin = {OriginKind::kResult, 0, static_cast<int32_t>(i)};
    }
    ops_into(body, main.body.ops, 0, main.body.ops.size(), -1);
    return std::move(graph_);
  }

 private:
  int& tensor_of(ir::ValueId value) { return tensor_of_[static_cast<size_t>(value)]; }

  int argument(int block, ir::ValueId value) {
    const int id = graph_.add_tensor(graph_.function->type_of(value), value, -1, block);
    graph_.block(block).arguments.push_back(id);
    tensor_of(value) = id;
    return id;
  }

  /// The call op directly in the copy `frame` through which the copy `inner` was inlined.
  [[nodiscard]] int32_t step_into(int32_t frame, int32_t inner) const {
    while (inner >= 0 && call(inner).parent != frame) inner = call(inner).parent;
    return inner;
  }

  [[nodiscard]] const ir::InlinedCall& call(int32_t frame) const {
    return graph_.module->inlined_calls[static_cast<size_t>(frame)];
  }

  void ops_into(int block, const std::vector<ir::Op>& ops, size_t begin, size_t end, int32_t frame) {
    for (size_t i = begin; i < end;) {
      const int32_t inner = ops[i].location.frame == frame ? -1 : step_into(frame, ops[i].location.frame);
      if (inner < 0) {
        op_into(block, ops[i++], frame);
        continue;
      }
      size_t last = i + 1;
      while (last < end && step_into(frame, ops[last].location.frame) == inner) ++last;
      frame_into(block, ops, i, last, inner);
      i = last;
    }
  }

  int node_into(int block, Node node) {
    node.block = block;
    const int id = graph_.add_node(std::move(node));
    graph_.block(block).nodes.push_back(id);
    return id;
  }

  std::vector<int> tensors_of(const std::vector<ir::ValueId>& values) {
    std::vector<int> out;
    for (const ir::ValueId value : values) out.push_back(tensor_of(value));
    return out;
  }

  /// A called function: inside, its arguments are values of their own.
  void frame_into(int block, const std::vector<ir::Op>& ops, size_t begin, size_t end, int32_t frame) {
    const ir::InlinedCall& call_site = call(frame);
    Node node;
    node.kind = NodeKind::kFrame;
    node.frame = frame;
    node.line = call_site.location.line;
    node.operands = tensors_of(call_site.arguments);
    const int id = node_into(block, std::move(node));
    const int body = graph_.add_block(id);
    graph_.node(id).blocks = {body};
    std::vector<std::pair<ir::ValueId, int>> shadowed;
    for (size_t i = 0; i < call_site.arguments.size(); ++i) {
      const ir::ValueId value = call_site.arguments[i];
      const bool again = std::find(call_site.arguments.begin(), call_site.arguments.begin() + static_cast<ptrdiff_t>(i),
                                   value) != call_site.arguments.begin() + static_cast<ptrdiff_t>(i);
      const int outer = tensor_of(value);
      const int inside = argument(body, value);
      if (again) {
        tensor_of(value) = outer;  // of the first; this one has an edge of its own (call_edge), or is a scalar
      } else {
        shadowed.emplace_back(value, outer);
      }
      annotate(inside, call_site.argument_shardings, i, call_site.location.line);
    }
    open_the_others(graph_.block(body).arguments);
    std::vector<bool> is_inner;
    for (const ir::ValueId value : call_site.results) is_inner.push_back(tensor_of(value) < 0);
    ops_into(body, ops, begin, end, frame);
    Node terminator;
    terminator.kind = NodeKind::kTerminator;
    terminator.operands = tensors_of(call_site.results);
    graph_.add_uses(node_into(body, std::move(terminator)));
    for (const auto& [value, outer] : shadowed) tensor_of(value) = outer;
    graph_.add_uses(id);
    for (size_t i = 0; i < call_site.results.size(); ++i) {
      const ir::ValueId value = call_site.results[i];
      const int result = graph_.add_tensor(graph_.function->type_of(value), value, id, -1);
      graph_.node(id).results.push_back(result);
      annotate(result, call_site.result_shardings, i, call_site.location.line);
      // An argument handed back is known by the caller's own name for it.
      if (is_inner[i]) tensor_of(value) = result;
    }
    open_the_others(graph_.node(id).results);
  }

  /// Of the arguments (or results) of a call either all have a sharding or none: those not annotated are fully open.
  void open_the_others(const std::vector<int>& tensors) {
    const auto known =
        std::find_if(tensors.begin(), tensors.end(), [&](int t) { return graph_.sharding(t).has_value(); });
    if (known == tensors.end()) return;
    OpenSharding open;
    open.mesh = graph_.sharding(*known)->mesh;
    for (const int tensor : tensors) {
      if (!graph_.tensor(tensor).is_tensor() || graph_.sharding(tensor)) continue;
      open.dims.assign(static_cast<size_t>(graph_.tensor(tensor).type->rank()), {});
      for (sharding::DimSharding& dim : open.dims) dim.open = true;
      graph_.set_sharding(tensor, open, {});
    }
  }

  void annotate(int tensor, const std::vector<std::optional<sharding::TensorSharding>>& shardings, size_t index,
                int32_t line) {
    if (index >= shardings.size() || !shardings[index]) return;
    graph_.set_sharding(tensor, graph_.meshes.read(*shardings[index]), {OriginKind::kAnnotation, line, 0});
  }

  static NodeKind kind_of(const ops::OpDef& def) {
    const std::optional<ops::Structural> role = ops::role_of(def.body);
    if (!role) return NodeKind::kOp;
    switch (*role) {
      case ops::Structural::kReturn:
        return NodeKind::kTerminator;
      case ops::Structural::kWhile:
      case ops::Structural::kCase:
      case ops::Structural::kIf:
      case ops::Structural::kOptimizationBarrier:
      case ops::Structural::kManualComputation:
        return NodeKind::kRegions;
      case ops::Structural::kShardingConstraint:
      case ops::Structural::kReshard:
        return NodeKind::kConstraint;
      case ops::Structural::kShardingGroup:
        return NodeKind::kGroup;
      case ops::Structural::kPropagationBarrier:
        return NodeKind::kBarrier;
      case ops::Structural::kCall:
      case ops::Structural::kNamedComputation:
      case ops::Structural::kPartitionId:
      case ops::Structural::kReplicaId:
      case ops::Structural::kAfterAll:
      case ops::Structural::kTuple:
      case ops::Structural::kGetTupleElement:
      case ops::Structural::kComposite:
      case ops::Structural::kEffect:
      case ops::Structural::kConstant:
      case ops::Structural::kCustomCall:
        break;
    }
    return NodeKind::kOp;
  }

  /// An op that names a value at a call's edge makes no node: it is the argument inside, or what is returned.
  bool call_edge(int block, const ir::Op& op, int32_t frame) {
    if (frame < 0 || !ops::is_call_edge(op)) return false;
    const int64_t number = ir::int_or(op.attributes, ops::kCallEdge, ops::kReturnedEdge);
    const std::vector<ir::ValueId>& given = call(frame).arguments;
    int& named = tensor_of(op.results.front());
    named = tensor_of(op.operands.front());
    const auto argument = static_cast<size_t>(number);
    if (number >= 0 && argument < given.size() && given[argument] == op.operands.front() &&
        argument < graph_.block(block).arguments.size()) {
      named = graph_.block(block).arguments[argument];
    }
    return true;
  }

  void op_into(int block, const ir::Op& op, int32_t frame) {
    if (call_edge(block, op, frame)) return;
    Node node;
    node.op = &op;
    node.def = &ops::op(op.code);
    node.kind = kind_of(*node.def);
    node.line = op.location.line;
    if (node.kind == NodeKind::kGroup) node.group = ir::int_or(op.attributes, "group_id", 0);
    node.operands = tensors_of(op.operands);
    const int id = node_into(block, std::move(node));
    // MLIR makes an op after the ops in its regions, so their uses are older.
    if (graph_.node(id).kind == NodeKind::kRegions) {
      for (const ir::Region& region : op.regions) {
        const int inner = graph_.add_block(id);
        graph_.node(id).blocks.push_back(inner);
        for (const ir::ValueId value : region.arguments) argument(inner, value);
        ops_into(inner, region.ops, 0, region.ops.size(), frame);
      }
    }
    graph_.add_uses(id);
    for (const ir::ValueId value : op.results) {
      const int result = graph_.add_tensor(graph_.function->type_of(value), value, id, -1);
      graph_.node(id).results.push_back(result);
      tensor_of(value) = result;
    }
    if (is_manual(graph_, id)) return manual_facts(id);
    const bool is_constraint = graph_.node(id).kind == NodeKind::kConstraint;
    const auto* shardings = shardings_of(op.attributes, is_constraint ? "sharding" : "sdy.sharding");
    const Origin origin{is_constraint ? OriginKind::kConstraint : OriginKind::kAnnotation, op.location.line, 0};
    for (size_t i = 0; shardings && i < shardings->size() && i < op.results.size(); ++i) {
      graph_.set_sharding(graph_.node(id).results[i], graph_.meshes.read((*shardings)[i]), origin);
    }
  }

  void manual_facts(int id) {
    const ir::AttributeList& attributes = graph_.node(id).op->attributes;
    const auto* in = shardings_of(attributes, "in_shardings");
    const auto* out = shardings_of(attributes, "out_shardings");
    const ir::Attribute* axes = ir::find(attributes, "manual_axes");
    const auto* names = axes ? axes->as<ir::ArrayAttr>() : nullptr;
    Node& node = graph_.node(id);
    for (const auto* list : {in, out}) {
      for (size_t i = 0; list && i < list->size(); ++i) {
        (list == in ? node.in_shardings : node.out_shardings).push_back(graph_.meshes.read((*list)[i]));
      }
    }
    std::optional<int> row;  // of the first mesh that has axes; the others are equal or empty
    for (const auto* list : {&node.in_shardings, &node.out_shardings}) {
      for (const OpenSharding& sharding : *list) {
        if (!row && !graph_.meshes.mesh(sharding.mesh).axes.empty()) row = sharding.mesh;
      }
    }
    if (!row || names == nullptr) return;
    const mesh::Mesh& mesh = graph_.meshes.mesh(*row);
    for (auto* list : {&node.in_shardings, &node.out_shardings}) {
      for (OpenSharding& sharding : *list) {
        if (graph_.meshes.mesh(sharding.mesh).is_empty()) sharding.mesh = *row;
      }
    }
    for (const ir::Attribute& name : names->values) {
      const auto* text = name.as<ir::StringAttr>();
      const std::optional<int> axis = text ? mesh.axis_index(text->value) : std::nullopt;
      if (axis && mesh.axes[static_cast<size_t>(*axis)].size != 1) node.manual_axes.push_back(*axis);
    }
    std::sort(node.manual_axes.begin(), node.manual_axes.end());
  }

  const Options& options_;
  Graph graph_;
  std::vector<int> tensor_of_;  ///< by ValueId, in the scope that is being built
};

}  // namespace

Graph build_graph(const ir::Module& module, const Options& options) { return Builder(module, options).build(); }

}  // namespace meshd::propagation
