// The def-use graph that propagation works on: tensors, nodes and blocks. build_graph() makes it from the IR, the
// import steps rearrange it, the driver writes shardings, emit() makes IR of it again.
//
// Invariant: the uses of a tensor are in the order in which MLIR walks them, newest first, because it decides ties.
//
// Steps of build_graph():
//   1. A tensor for each argument of @main, with its seed or its annotation; a result record for each result.
//   2. A node for each op, with its uses; tensors for its results, with their annotations. Regions become blocks, whose
//      uses are older than those of the op.
//   3. The ops that came from one call (Module::inlined_calls) become a frame: a node whose block is the body. Inside,
//      the call's arguments are tensors of their own.
//   4. A manual computation notes its in_shardings, out_shardings and manual axes.
//
// Example of an edge (edges.cpp), while with one carried value: sources are the initial value and what the body
// returns; targets are the loop's result and the arguments of condition and body. All targets have one holder, the
// result of the edge, hence one sharding.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "service/ir/program.h"
#include "service/ops/op_def.h"
#include "service/propagation/graph/open_sharding.h"
#include "service/propagation/propagate.h"

namespace meshd::propagation {

/// Operand `operand` of node `node`.
struct Use {
  int node = 0;
  int operand = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

/// A value. Targets of a data-flow edge (results and carried values of loops, results of computations) share the
/// sharding of the edge's result, their `holder`.
struct Tensor {
  const ir::Type* type = nullptr;
  int holder = -1;  ///< tensor whose `sharding` this one's is; itself for most
  int node = -1;    ///< that defines it; -1: argument of `block`
  int block = -1;
  ir::ValueId value = ir::kNoValue;  ///< in the program that the graph was built from
  int newest_use = -1;               ///< in Graph's list of uses
  int oldest_use = -1;
  int use_count = 0;
  std::optional<OpenSharding> sharding;
  Origin origin;

  [[nodiscard]] bool is_tensor() const { return type->is_tensor(); }
  [[nodiscard]] bool is_scalar() const { return is_tensor() && type->rank() == 0; }
};

enum class NodeKind : uint8_t {
  kOp,          ///< an op without regions of interest; has a rule or none
  kRegions,     ///< while, case, if, optimization_barrier, manual_computation
  kFrame,       ///< a call whose body is its block
  kEdge,        ///< Shardy's data_flow_edge: sources and targets are one value
  kConstraint,  ///< sharding_constraint or reshard; its sharding is its result's
  kBarrier,     ///< propagation_barrier
  kGroup,       ///< sharding_group
  kTerminator,
};

/// What an edge does at the border of a manual computation.
enum class Border : uint8_t { kNone, kInto, kOutOf };

struct Node {
  NodeKind kind = NodeKind::kOp;
  const ir::Op* op = nullptr;  ///< null for frames, edges and constraints that import added
  const ops::OpDef* def = nullptr;
  int block = -1;
  std::vector<int> operands;  ///< tensors
  std::vector<int> uses;      ///< by operand: its place in Graph's list of uses
  std::vector<int> results;
  std::vector<int> blocks;
  std::vector<int> edges;  ///< by operand: the edge it is a source of, -1 for none; empty for none at all
  std::shared_ptr<const sharding::FactorRule> rule;
  bool rule_known = false;
  bool is_copy = false;  ///< of a constant, for one use
  bool erased = false;
  bool queued = false;
  int32_t frame = -1;  ///< kFrame: in Module::inlined_calls
  int32_t line = 0;
  int64_t group = -1;  ///< kGroup
  // kEdge:
  std::vector<Use> sources;
  std::vector<int> other_targets;  ///< besides the operand: carried values inside of a loop
  Border border = Border::kNone;
  std::optional<OpenSharding> outer;  ///< of the manual computation's operand or result as written: has the manual axes
  std::vector<int> manual_axes;
  // kRegions of a manual computation:
  std::vector<OpenSharding> in_shardings;
  std::vector<OpenSharding> out_shardings;
};

struct Block {
  int node = -1;  ///< that it belongs to; -1: the function
  std::vector<int> arguments;
  std::vector<int> nodes;
};

struct FunctionResult {
  std::optional<OpenSharding> sharding;
  Origin origin;
};

/// One program. Block 0 is @main's. One thread.
class Graph {
 public:
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<Block> blocks;
  std::vector<FunctionResult> results;
  MeshTable meshes;
  const ir::Module* module = nullptr;
  const ir::Function* function = nullptr;

  Tensor& tensor(int id) { return tensors[static_cast<size_t>(id)]; }
  [[nodiscard]] const Tensor& tensor(int id) const { return tensors[static_cast<size_t>(id)]; }
  Node& node(int id) { return nodes[static_cast<size_t>(id)]; }
  [[nodiscard]] const Node& node(int id) const { return nodes[static_cast<size_t>(id)]; }
  Block& block(int id) { return blocks[static_cast<size_t>(id)]; }
  [[nodiscard]] const Block& block(int id) const { return blocks[static_cast<size_t>(id)]; }

  int add_tensor(const ir::Type& type, ir::ValueId value, int node_id, int block_id);
  int add_node(Node node);
  int add_block(int node_id);

  std::optional<OpenSharding>& sharding(int tensor_id) { return tensor(tensor(tensor_id).holder).sharding; }
  [[nodiscard]] const std::optional<OpenSharding>& sharding(int tensor_id) const {
    return tensor(tensor(tensor_id).holder).sharding;
  }
  void set_sharding(int tensor_id, OpenSharding sharding, Origin origin);

  /// Calls `visit(Use)` for all uses of a tensor, the newest first as MLIR keeps them, until it returns false. The
  /// list may change meanwhile, but for the use that comes next.
  template <typename Visit>
  void each_use(int tensor_id, Visit&& visit) const {
    for (int at = tensor(tensor_id).newest_use; at >= 0;) {
      const Link link = links_[static_cast<size_t>(at)];
      if (!visit(link.use)) return;
      at = link.older;
    }
  }
  template <typename Predicate>
  [[nodiscard]] bool any_use(int tensor_id, Predicate&& predicate) const {
    bool found = false;
    each_use(tensor_id, [&](const Use& use) { return !(found = predicate(use)); });
    return found;
  }

  /// Adds a node's uses of its operands.
  void add_uses(int node_id);
  void set_operand(int node_id, int operand, int tensor_id);
  /// Lets all users of `from` use `to` instead, except `except`; newest first, as MLIR does.
  void replace_uses(int from, int to, int except);
  /// Takes a node out of its block and its uses away. Its results must be unused.
  void erase(int node_id);
  /// Places a node into the block that defines `tensor_id`, right behind the definition.
  void place_behind(int node_id, int tensor_id);
  /// Drops erased nodes out of the lists of all blocks.
  void sweep();

  /// Result of an edge, or another target of one.
  [[nodiscard]] bool is_edge_target(int tensor_id) const {
    const Tensor& t = tensor(tensor_id);
    return t.holder != tensor_id || (t.node >= 0 && node(t.node).kind == NodeKind::kEdge);
  }

 private:
  struct Link {
    Use use;
    int older = -1;
    int newer = -1;
  };
  void link(int node_id, int operand);
  void unlink(int node_id, int operand);
  std::vector<Link> links_;
};

/// The role of a node's row where it is structural, or nothing.
std::optional<ops::Structural> role_of(const Node& node);
/// Nothing happens but its results: may be dropped when they are not used.
bool is_pure(const Graph& graph, int node_id);
bool is_constraint(const Graph& graph, int node_id);
bool is_manual(const Graph& graph, int node_id);

/// The graph of a program's @main: all annotations of the text and the seeds set, no edges yet.
Graph build_graph(const ir::Module& module, const Options& options);

}  // namespace meshd::propagation
