#include "service/propagation/propagate.h"

#include "service/propagation/driver.h"
#include "service/propagation/emit.h"
#include "service/propagation/graph.h"
#include "service/propagation/import_steps.h"

namespace meshd::propagation {

Propagated propagate(const ir::Module& inlined, const Options& options) {
  Graph graph = build_graph(inlined, options);
  split_constants(graph);
  add_edges(graph);
  apply_constraints(graph);
  Groups groups(graph);
  groups.sync(graph);
  run_rounds(graph, groups);
  return emit(graph);
}

}  // namespace meshd::propagation
