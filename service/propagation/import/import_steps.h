// The import passes of propagation, in the order of Shardy's import pipeline.
#pragma once

#include <map>
#include <vector>

#include "service/propagation/graph/graph.h"

namespace meshd::propagation {

/// Every use of a constant, and of a broadcast of a scalar, by anything that is not itself constant gets a copy of the
/// computation that leads to it, so that shardings do not flow between the uses. Constants, iotas, and pointwise ops,
/// broadcasts, reshapes and slices (and calls of functions that hold nothing else) of such count. The copies are
/// bounded by the size of the program: uses beyond share a computation.
void split_constants(Graph& graph);

/// Manual computations: every manual axis that an operand or result does not use becomes replicated. Then data-flow
/// edges: behind results of loops, conditionals, barriers, manual computations and calls, and at the head of the latter
/// two's bodies.
void add_edges(Graph& graph);

/// A closed sharding_constraint (or operand of a manual computation) decides its input where nothing else does; behind
/// a chain of constraints later users take the last one's result.
void apply_constraints(Graph& graph);

/// Members of sharding groups by group, groups with a member in common merged. Throws invalid_program where a group
/// crosses the edge of a manual computation or its members differ in shape.
class Groups {
 public:
  explicit Groups(const Graph& graph);
  /// Gives members without a sharding that of the others; where they conflict, all get a fully open constraint behind
  /// them, which is the member from then on.
  void sync(Graph& graph);
  /// The other members of a tensor's group, itself included; empty for a tensor without group.
  [[nodiscard]] const std::vector<int>& members(int tensor) const;

 private:
  std::vector<std::vector<int>> groups_;
  std::map<int, size_t> group_of_;
};

/// A constraint of `tensor` to `sharding`, in no block yet; users are not changed. Returns its node.
int make_constraint(Graph& graph, int tensor, OpenSharding sharding, Origin origin);

}  // namespace meshd::propagation
