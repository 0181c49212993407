#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "service/propagation/import/import_steps.h"

namespace meshd::propagation {
namespace {

struct Member {
  int tensor;
  int64_t group;
  int manual;  ///< the manual computation around it, or -1
  int line;
};

int manual_around(const Graph& graph, int node) {
  for (int block = graph.node(node).block; block >= 0;) {
    const int owner = graph.block(block).node;
    if (owner < 0) return -1;
    if (is_manual(graph, owner)) return owner;
    block = graph.node(owner).block;
  }
  return -1;
}

void collect(const Graph& graph, int block, std::vector<Member>& out) {
  for (const int id : graph.block(block).nodes) {
    for (const int inner : graph.node(id).blocks) collect(graph, inner, out);
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::kGroup)
      out.push_back({node.operands[0], node.group, manual_around(graph, id), node.line});
  }
}

[[noreturn]] void refuse(const Member& member, const char* why) {
  ir::Location location;
  location.line = member.line;
  location.column = 1;
  ir::fail("invalid_program", location, fmt::format("values of sharding group {}{}", member.group, why));
}

}  // namespace

Groups::Groups(const Graph& graph) {
  std::vector<Member> members;
  collect(graph, 0, members);
  std::map<int64_t, Member> first_of;
  std::map<int64_t, int64_t> leader;  // union-find over the numbers in the text
  const auto find = [&](int64_t group) {
    while (leader.at(group) != group) group = leader.at(group);
    return group;
  };
  std::map<int, int64_t> group_of_tensor;
  for (const Member& member : members) {
    const auto [first, is_first] = first_of.emplace(member.group, member);
    leader.emplace(member.group, member.group);
    if (!is_first && first->second.manual != member.manual) refuse(member, " cross the edge of a manual computation");
    if (graph.tensor(first->second.tensor).type->dims() != graph.tensor(member.tensor).type->dims()) {
      refuse(member, " differ in shape");
    }
    const auto [known, is_new] = group_of_tensor.emplace(member.tensor, member.group);
    if (is_new) continue;
    const int64_t a = find(known->second);
    const int64_t b = find(member.group);
    leader[std::max(a, b)] = std::min(a, b);
  }
  std::map<int64_t, size_t> number;
  for (const auto& [group, unused] : leader) {
    if (find(group) == group) number.emplace(group, number.size());
  }
  groups_.resize(number.size());
  for (const Member& member : members) {
    const size_t group = number.at(find(member.group));
    if (group_of_.emplace(member.tensor, group).second) groups_[group].push_back(member.tensor);
  }
}

const std::vector<int>& Groups::members(int tensor) const {
  static const std::vector<int> kNone;
  const auto found = group_of_.find(tensor);
  return found == group_of_.end() ? kNone : groups_[found->second];
}

void Groups::sync(Graph& graph) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<int>& members = groups_[g];
    std::optional<OpenSharding> common;
    Origin origin;
    bool conflict = false;
    for (const int member : members) {
      const std::optional<OpenSharding>& candidate = graph.sharding(member);
      if (!candidate || (members.size() > 1 && candidate->is_blank())) continue;
      if (!common) {
        common = candidate;
        origin = graph.tensor(graph.tensor(member).holder).origin;
      } else if (*common != *candidate) {
        conflict = true;
      }
    }
    if (!common) continue;
    if (!conflict) {
      for (const int member : members) graph.set_sharding(member, *common, origin);
      continue;
    }
    OpenSharding open;
    open.mesh = common->mesh;
    open.dims.resize(common->dims.size());
    for (sharding::DimSharding& dim : open.dims) dim.open = true;
    for (int& member : members) {
      const int line = graph.tensor(member).node >= 0 ? graph.node(graph.tensor(member).node).line : 0;
      const int constraint = make_constraint(graph, member, open, {OriginKind::kGroup, line, 0});
      graph.place_behind(constraint, member);
      const int result = graph.node(constraint).results[0];
      graph.replace_uses(member, result, constraint);
      group_of_.erase(member);
      member = result;
      group_of_.emplace(member, g);
    }
  }
}

}  // namespace meshd::propagation
