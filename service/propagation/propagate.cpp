#include "service/propagation/propagate.h"

#include <algorithm>

#include "service/ops/collective/sdy_collectives.h"
#include "service/propagation/export/copies.h"
#include "service/propagation/export/emit.h"
#include "service/propagation/graph/graph.h"
#include "service/propagation/import/import_steps.h"
#include "service/propagation/strategies/driver.h"

namespace meshd::propagation {

namespace {

/// No annotation and no seed anywhere: nothing to find out.
bool says_nothing(const Graph& graph) {
  const auto is_free = [](const auto& each) { return !each.sharding; };
  return std::all_of(graph.tensors.begin(), graph.tensors.end(), is_free) &&
         std::all_of(graph.results.begin(), graph.results.end(), is_free) &&
         std::all_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.in_shardings.empty() && node.out_shardings.empty(); });
}

Propagated unchanged(const ir::Module& module) {
  Propagated out;
  ir::Module plain = module;
  ops::drop_call_edges(plain);
  out.module = std::make_shared<const ir::Module>(std::move(plain));
  out.values.resize(module.main().values.size());
  out.origins.resize(module.main().values.size());
  out.results.resize(module.main().results.size());
  out.result_origins.resize(module.main().results.size());
  return out;
}

}  // namespace

Propagated propagate(const ir::Module& inlined, const Options& options) {
  Graph graph = build_graph(inlined, options);
  if (says_nothing(graph)) return unchanged(inlined);
  split_constants(graph);
  add_edges(graph);
  apply_constraints(graph);
  Groups groups(graph);
  groups.sync(graph);
  run_rounds(graph, groups);
  unify_copies(graph);
  return emit(graph);
}

}  // namespace meshd::propagation
