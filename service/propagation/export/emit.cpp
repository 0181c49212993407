#include "service/propagation/export/emit.h"

#include <map>
#include <unordered_map>
#include <utility>

#include "service/ir/op_builder.h"
#include "service/propagation/export/copies.h"
#include "service/propagation/graph/manual.h"

namespace meshd::propagation {
namespace {

class Emitter {
 public:
  explicit Emitter(const Graph& graph) : graph_(graph), id_of_(graph.tensors.size(), ir::kNoValue) {
    const ir::Module& from = *graph.module;
    module_.name = from.name;
    module_.attributes = from.attributes;
    module_.meshes = from.meshes;
    for (ir::NamedMesh& mesh : graph.meshes.named()) {
      if (from.find_mesh(mesh.name) == nullptr) module_.meshes.push_back(std::move(mesh));
    }
    module_.num_partitions = from.num_partitions;
    module_.num_replicas = from.num_replicas;
    const ir::Function& main = *graph.function;
    function_.name = main.name;
    function_.is_public = main.is_public;
    function_.arguments = main.arguments;
    function_.results = main.results;
    function_.attributes = main.attributes;
    function_.location = main.location;
  }

  Propagated run() {
    function_.body = region(0);
    note_empty_calls();
    for (const FunctionResult& result : graph_.results) {
      out_.results.push_back(written(result.sharding));
      out_.result_origins.push_back(result.origin);
    }
    module_.functions.push_back(std::move(function_));
    for (const ir::Function& other : graph_.module->functions) {
      if (&other != graph_.function) module_.functions.push_back(other);
    }
    out_.module = std::make_shared<const ir::Module>(std::move(module_));
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::optional<sharding::TensorSharding> written(const std::optional<OpenSharding>& sharding) const {
    if (!sharding) return std::nullopt;
    return graph_.meshes.write(*sharding);
  }

  ir::ValueId fresh(const ir::Type& type, std::string name, std::optional<sharding::TensorSharding> sharding,
                    Origin origin) {
    out_.values.push_back(std::move(sharding));
    out_.origins.push_back(origin);
    return function_.add_value(type, std::move(name));
  }

  /// A new value for a tensor, with the sharding of its holder.
  ir::ValueId value_for(int tensor) {
    const Tensor& from = graph_.tensor(tensor);
    const ir::Value& old = graph_.function->values[static_cast<size_t>(from.value)];
    const ir::ValueId id =
        fresh(old.type, old.name, written(graph_.sharding(tensor)), graph_.tensor(from.holder).origin);
    bind(tensor, id);
    any_id_of_.emplace(from.value, id);
    return id;
  }

  void bind(int tensor, ir::ValueId id) { id_of_[static_cast<size_t>(tensor)] = id; }
  [[nodiscard]] ir::ValueId id_of(int tensor) const { return id_of_[static_cast<size_t>(tensor)]; }

  std::vector<ir::ValueId> ids_of(const std::vector<int>& tensors) const {
    std::vector<ir::ValueId> out;
    for (const int tensor : tensors) out.push_back(id_of(tensor));
    return out;
  }

  ir::Region region(int block) {
    ir::Region out;
    for (const int argument : graph_.block(block).arguments) out.arguments.push_back(value_for(argument));
    nodes_into(block, out.ops);
    return out;
  }

  void nodes_into(int block, std::vector<ir::Op>& ops) {
    for (const int id : graph_.block(block).nodes) {
      if (!graph_.node(id).erased) node_into(id, ops);
    }
  }

  void node_into(int id, std::vector<ir::Op>& ops) {
    const Node& node = graph_.node(id);
    switch (node.kind) {
      case NodeKind::kGroup:
        return;
      case NodeKind::kEdge:
        return bind(node.results[0], id_of(node.operands[0]));
      case NodeKind::kFrame:
        return frame_into(id, ops);
      case NodeKind::kConstraint:
        return constraint_into(node, ops);
      case NodeKind::kTerminator:
        if (node.op == nullptr) return;  // of a call
        break;
      case NodeKind::kOp:
      case NodeKind::kRegions:
      case NodeKind::kBarrier:
        break;
    }
    if (node.is_copy && reuse(node)) return;
    ir::Op op = copy(node);
    for (const int block : node.blocks) op.regions.push_back(region(block));
    if (node.kind == NodeKind::kOp) {
      for (const ir::Region& inner : node.op->regions) op.regions.push_back(scalar_region(inner));
    }
    if (is_manual(graph_, id)) fill_up_manual(node, op);
    for (const int result : node.results) op.results.push_back(value_for(result));
    if (is_manual(graph_, id)) {
      const auto& out = ir::find(op.attributes, "out_shardings")->as<ir::ShardingAttr>()->shardings;
      for (size_t i = 0; i < op.results.size() && i < out.size(); ++i) {
        std::optional<sharding::TensorSharding>& sharding = out_.values[static_cast<size_t>(op.results[i])];
        if (sharding) sharding = out[i];
      }
    }
    if (node.is_copy) copies_[node.op].push_back({op.operands, id});
    ops.push_back(std::move(op));
  }

  /// The op without results and regions.
  ir::Op copy(const Node& node) const {
    ir::Op op;
    op.code = node.op->code;
    op.name = node.op->name;
    op.attributes = node.op->attributes;
    op.location = node.op->location;
    op.location.frame = frame_;
    op.operands = ids_of(node.operands);
    return op;
  }

  /// Common subexpression elimination: true when an equal copy precedes the node, whose values replace this one's.
  bool reuse(const Node& node) {
    const std::vector<ir::ValueId> operands = ids_of(node.operands);
    for (const auto& [known_operands, known] : copies_[node.op]) {
      if (known_operands != operands || !same_results(node, graph_.node(known))) continue;
      for (size_t i = 0; i < node.results.size(); ++i) bind(node.results[i], id_of(graph_.node(known).results[i]));
      return true;
    }
    return false;
  }

  [[nodiscard]] bool same_results(const Node& a, const Node& b) const {
    if (a.block != b.block) return false;
    for (size_t i = 0; i < a.results.size(); ++i) {
      if (!same(graph_.sharding(a.results[i]), graph_.sharding(b.results[i]))) return false;
    }
    return true;
  }

  /// Equal once closed; nothing known is replicated.
  [[nodiscard]] bool same(const std::optional<OpenSharding>& a, const std::optional<OpenSharding>& b) const {
    const auto is_replicated = [&](const std::optional<OpenSharding>& p) {
      return !p || (!graph_.meshes.mesh(p->mesh).is_maximal() && written(p)->is_fully_replicated());
    };
    if (is_replicated(a) || is_replicated(b)) return is_replicated(a) && is_replicated(b);
    return sharding::is_equivalent(*written(a), *written(b));
  }

  /// Regions of scalar ops, which the graph does not look into, with new values.
  ir::Region scalar_region(const ir::Region& from) {
    ir::Region out;
    const auto made = [&](ir::ValueId old) {
      const ir::Value& value = graph_.function->values[static_cast<size_t>(old)];
      const ir::ValueId id = fresh(value.type, value.name, std::nullopt, {});
      any_id_of_[old] = id;
      return id;
    };
    for (const ir::ValueId argument : from.arguments) out.arguments.push_back(made(argument));
    for (const ir::Op& op : from.ops) {
      ir::Op& copied = out.ops.emplace_back();
      copied.code = op.code;
      copied.name = op.name;
      copied.attributes = op.attributes;
      copied.location = op.location;
      copied.location.frame = frame_;
      for (const ir::ValueId operand : op.operands) copied.operands.push_back(any_id_of_.at(operand));
      for (const ir::Region& inner : op.regions) copied.regions.push_back(scalar_region(inner));
      for (const ir::ValueId result : op.results) copied.results.push_back(made(result));
    }
    return out;
  }

  /// Closed, and cut back to the axes that divide: at the edges of a manual computation every shard has one size.
  [[nodiscard]] sharding::TensorSharding at_edge(const OpenSharding& sharding, int tensor) const {
    OpenSharding even = sharding;
    if (graph_.tensor(tensor).is_tensor()) {
      const tensor::Dims& dims = graph_.tensor(tensor).type->dims();
      for (size_t d = 0; d < even.dims.size() && d < dims.size(); ++d) {
        even.dims[d].axes = dividing_prefix(even.dims[d].axes, dims[d], graph_.meshes.mesh(even.mesh));
      }
    }
    return graph_.meshes.write(even);
  }

  void fill_up_manual(const Node& node, ir::Op& op) {
    std::vector<sharding::TensorSharding> in;
    for (size_t i = 0; i < node.in_shardings.size(); ++i) {
      const int argument = graph_.block(node.blocks[0]).arguments[i];
      const std::optional<OpenSharding>& inside = graph_.sharding(argument);
      const OpenSharding& outer = node.in_shardings[i];
      in.push_back(at_edge(inside ? with_free_axes(outer, *inside, node.manual_axes) : outer, node.operands[i]));
    }
    std::vector<sharding::TensorSharding> out;
    for (size_t i = 0; i < node.out_shardings.size(); ++i) {
      const std::optional<OpenSharding>& sharding = graph_.sharding(node.results[i]);
      out.push_back(at_edge(sharding ? *sharding : node.out_shardings[i], node.results[i]));
    }
    ir::set(op.attributes, "in_shardings", {ir::ShardingAttr{std::move(in), true}});
    ir::set(op.attributes, "out_shardings", {ir::ShardingAttr{std::move(out), true}});
  }

  void constraint_into(const Node& node, std::vector<ir::Op>& ops) {
    const int result = node.results[0];
    if (node.op == nullptr) {
      bind(result, reshard_into(ops, id_of(node.operands[0]), result, node.line));
      return;
    }
    ir::Op op = copy(node);
    ir::set(op.attributes, "sharding", {ir::ShardingAttr{{*written(graph_.sharding(result))}, false}});
    op.results.push_back(value_for(result));
    ops.push_back(std::move(op));
  }

  /// Reshards a value to the sharding of `tensor`; the new value has no name in the text.
  ir::ValueId reshard_into(std::vector<ir::Op>& ops, ir::ValueId from, int tensor, int line) {
    const Tensor& to = graph_.tensor(tensor);
    std::optional<sharding::TensorSharding> sharding = written(graph_.sharding(tensor));
    ir::AttributeList attributes{{"sharding", {ir::ShardingAttr{{*sharding}, false}}}};
    const ir::ValueId id = fresh(*to.type, "", std::move(sharding), graph_.tensor(to.holder).origin);
    ir::OpBuilder builder(function_, ops::code_of, ops, {line, 1, calls_, frame_, {}});
    builder.define({id}, "sdy.reshard", {from}, std::move(attributes));
    return id;
  }

  /// What a value is called on the other side of a call's border, where it may be sharded otherwise.
  ir::ValueId across(std::vector<ir::Op>& ops, int from, int to, int line) {
    const std::optional<OpenSharding>& wanted = graph_.sharding(to);
    if (!wanted || !graph_.tensor(to).is_tensor() || same(graph_.sharding(from), wanted)) return id_of(from);
    return reshard_into(ops, id_of(from), to, line);
  }

  void frame_into(int id, std::vector<ir::Op>& ops) {
    const Node& node = graph_.node(id);
    const ir::InlinedCall& from = graph_.module->inlined_calls[static_cast<size_t>(node.frame)];
    const auto number = static_cast<int32_t>(module_.inlined_calls.size());
    ir::InlinedCall made = from;
    made.parent = frame_;
    made.location.frame = frame_;
    module_.inlined_calls.push_back(made);
    out_.call_signatures.push_back(signature_of(graph_, id));
    frame_of_.emplace(node.frame, number);
    const int body = node.blocks[0];
    const std::vector<int>& arguments = graph_.block(body).arguments;
    made.arguments.clear();
    made.argument_shardings.clear();
    for (size_t i = 0; i < arguments.size(); ++i) {
      bind(arguments[i], across(ops, node.operands[i], arguments[i], node.line));
      made.arguments.push_back(id_of(arguments[i]));
      made.argument_shardings.push_back(written(graph_.sharding(arguments[i])));
    }
    const int32_t outer_frame = std::exchange(frame_, number);
    std::vector<int32_t> inner_calls = calls_;
    inner_calls.push_back(node.line);
    std::swap(calls_, inner_calls);
    nodes_into(body, ops);
    calls_ = std::move(inner_calls);
    frame_ = outer_frame;
    const std::vector<int> returned = graph_.node(graph_.block(body).nodes.back()).operands;
    made.results.clear();
    made.result_shardings.clear();
    for (size_t i = 0; i < node.results.size(); ++i) {
      bind(node.results[i], across(ops, returned[i], node.results[i], node.line));
      made.results.push_back(id_of(node.results[i]));
      // What the function gives; users may find it resharded, as an annotation of the call or their own rules ask.
      made.result_shardings.push_back(written(graph_.sharding(returned[i])));
    }
    module_.inlined_calls[static_cast<size_t>(number)] = std::move(made);
  }

  /// Calls of functions without ops left no trace in the graph.
  void note_empty_calls() {
    for (size_t i = 0; i < graph_.module->inlined_calls.size(); ++i) {
      const ir::InlinedCall& call = graph_.module->inlined_calls[i];
      if (frame_of_.count(static_cast<int32_t>(i)) != 0) continue;
      ir::InlinedCall made = call;
      if (call.parent >= 0) {
        const auto parent = frame_of_.find(call.parent);
        if (parent == frame_of_.end()) continue;
        made.parent = parent->second;
      }
      made.location.frame = made.parent;
      const auto translate = [&](const std::vector<ir::ValueId>& from, std::vector<ir::ValueId>& to,
                                 std::vector<std::optional<sharding::TensorSharding>>& shardings) {
        to.clear();
        shardings.clear();
        for (const ir::ValueId value : from) {
          const auto found = any_id_of_.find(value);
          if (found == any_id_of_.end()) return false;
          to.push_back(found->second);
          shardings.push_back(out_.of(found->second));
        }
        return true;
      };
      if (!translate(call.arguments, made.arguments, made.argument_shardings)) continue;
      if (!translate(call.results, made.results, made.result_shardings)) continue;
      frame_of_[static_cast<int32_t>(i)] = static_cast<int32_t>(module_.inlined_calls.size());
      out_.call_signatures.push_back(made.callee);
      for (const auto* list : {&made.argument_shardings, &made.result_shardings}) {
        for (const auto& sharding : *list) out_.call_signatures.back() += sharding ? sharding::to_sdy(*sharding) : ";";
      }
      module_.inlined_calls.push_back(std::move(made));
    }
  }

  const Graph& graph_;
  ir::Module module_;
  ir::Function function_;
  Propagated out_;
  std::vector<ir::ValueId> id_of_;                          ///< by tensor
  std::unordered_map<ir::ValueId, ir::ValueId> any_id_of_;  ///< by old value: the first (or scalar) that represents it
  std::unordered_map<const ir::Op*, std::vector<std::pair<std::vector<ir::ValueId>, int>>> copies_;
  std::unordered_map<int32_t, int32_t> frame_of_;  ///< by call of the input: its first copy
  int32_t frame_ = -1;
  std::vector<int32_t> calls_;
};

}  // namespace

Propagated emit(const Graph& graph) { return Emitter(graph).run(); }

}  // namespace meshd::propagation
