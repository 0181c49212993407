#include "service/propagation/strategies/user_priority.h"

#include <algorithm>
#include <map>
#include <set>

namespace meshd::propagation {
namespace {

int priority_of(const sharding::DimSharding& dim) { return dim.priority.value_or(0); }

/// What is left for round 0.
OpenSharding first_round(const OpenSharding& written) {
  OpenSharding out = written;
  for (sharding::DimSharding& dim : out.dims) {
    if (priority_of(dim) == 0) {
      dim.priority.reset();
      continue;
    }
    out.replicated.insert(out.replicated.end(), dim.axes.begin(), dim.axes.end());
    dim = {};
  }
  std::sort(out.replicated.begin(), out.replicated.end());
  return out;
}

}  // namespace

std::vector<PriorityRound> take_priorities(Graph& graph) {
  std::map<int, PriorityRound> rounds;
  const auto take = [&](std::optional<OpenSharding>& sharding, int tensor, int result) {
    if (!sharding) return;
    std::set<int> priorities;
    for (const sharding::DimSharding& dim : sharding->dims) {
      if (priority_of(dim) > 0) priorities.insert(priority_of(dim));
    }
    for (const int priority : priorities) {
      rounds[priority].priority = priority;
      rounds[priority].shardings.push_back({tensor, result, *sharding});
    }
    sharding = first_round(*sharding);
  };
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].holder == static_cast<int>(i)) take(graph.tensors[i].sharding, static_cast<int>(i), -1);
  }
  for (size_t i = 0; i < graph.results.size(); ++i) take(graph.results[i].sharding, -1, static_cast<int>(i));
  std::vector<PriorityRound> out;
  for (auto& [priority, round] : rounds) out.push_back(std::move(round));
  return out;
}

void enter_round(Graph& graph, const PriorityRound& round) {
  for (const PrioritizedSharding& each : round.shardings) {
    std::optional<OpenSharding>& current =
        each.tensor >= 0 ? graph.sharding(each.tensor) : graph.results[static_cast<size_t>(each.result)].sharding;
    if (!current) continue;
    AxisList entering;
    for (size_t i = 0; i < current->dims.size(); ++i) {
      const sharding::DimSharding& dim = each.written.dims[i];
      if (priority_of(dim) != round.priority) continue;
      current->dims[i] = {dim.axes, dim.open, std::nullopt};
      entering.insert(entering.end(), dim.axes.begin(), dim.axes.end());
    }
    AxisList& reserved = current->replicated;
    const auto enters = [&](const AxisRef& axis) {
      return std::find(entering.begin(), entering.end(), axis) != entering.end();
    };
    reserved.erase(std::remove_if(reserved.begin(), reserved.end(), enters), reserved.end());
  }
}

}  // namespace meshd::propagation
