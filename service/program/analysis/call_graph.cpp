#include "service/program/analysis/call_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/ops/op_def.h"

namespace meshd::program {
namespace {

struct Edge {
  size_t callee = 0;
  const ir::Op* call = nullptr;
};

void collect(const ir::Region& region, const std::unordered_map<std::string_view, size_t>& index,
             std::vector<Edge>& out) {
  ir::walk(region, [&](const ir::Op& op) {
    const std::string name = callee_of(op);
    if (name.empty()) return;
    const auto found = index.find(name);
    if (found == index.end()) ir::fail("invalid_program", op.location, "function @" + name + " is not defined");
    out.push_back({found->second, &op});
  });
}

}  // namespace

std::string callee_of(const ir::Op& op) {
  const std::optional<ops::Structural> role = ops::role_of(ops::op(op.code).body);
  const std::string_view name = role == ops::Structural::kCall        ? "callee"
                                : role == ops::Structural::kComposite ? "decomposition"
                                                                      : std::string_view();
  const ir::Attribute* attribute = name.empty() ? nullptr : ir::find(op.attributes, name);
  if (attribute == nullptr) return {};
  const auto* symbol = attribute->as<ir::SymbolAttr>();
  if (symbol == nullptr)
    ir::fail("invalid_program", op.location, "'" + std::string(name) + "' must be a function's name");
  return symbol->name;
}

std::vector<size_t> callees_first(const ir::Module& module) {
  std::unordered_map<std::string_view, size_t> index;
  for (size_t i = 0; i < module.functions.size(); ++i) {
    if (!index.emplace(module.functions[i].name, i).second) {
      ir::fail("invalid_program", module.functions[i].location,
               "function @" + module.functions[i].name + " is defined twice");
    }
  }
  const size_t count = module.functions.size();
  std::vector<std::vector<Edge>> calls(count);
  std::vector<std::vector<size_t>> callers(count);
  std::vector<size_t> open(count);
  std::vector<int> depth(count, 1);
  for (size_t i = 0; i < count; ++i) {
    collect(module.functions[i].body, index, calls[i]);
    open[i] = calls[i].size();
    for (const Edge& edge : calls[i]) callers[edge.callee].push_back(i);
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < count; ++i) {
    if (open[i] == 0) order.push_back(i);
  }
  for (size_t next = 0; next < order.size(); ++next) {
    const size_t done = order[next];
    for (const size_t caller : callers[done]) {
      depth[caller] = std::max(depth[caller], depth[done] + 1);
      if (depth[caller] > kMaxCallDepth) {
        ir::fail("invalid_program", module.functions[caller].location,
                 fmt::format("calls nest more than {} deep in @{}", kMaxCallDepth, module.functions[caller].name));
      }
      if (--open[caller] == 0) order.push_back(caller);
    }
  }
  if (order.size() == count) return order;
  // What is left calls itself or calls what does; walking along open calls ends on a circle.
  size_t at =
      static_cast<size_t>(std::find_if(open.begin(), open.end(), [](size_t n) { return n > 0; }) - open.begin());
  std::vector<bool> seen(count);
  while (true) {
    seen[at] = true;
    const auto edge =
        std::find_if(calls[at].begin(), calls[at].end(), [&](const Edge& e) { return open[e.callee] > 0; });
    if (seen[edge->callee]) {
      ir::fail("invalid_program", edge->call->location,
               "function @" + module.functions[edge->callee].name + " calls itself");
    }
    at = edge->callee;
  }
}

}  // namespace meshd::program
