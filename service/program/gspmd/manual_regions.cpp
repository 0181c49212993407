#include "service/program/gspmd/manual_regions.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>

#include "service/ir/region_utils.h"

namespace meshd::program {
namespace {

using ir::ValueId;
using ops::CustomCallKind;

/// Operands, and what regions read from around them.
std::vector<ValueId> used_values(const ir::Op& op) {
  std::vector<ValueId> out = op.operands;
  for (const ValueId id : ir::used_values_defined_above(op.regions)) out.push_back(id);
  return out;
}

bool is_edge(const ir::Op& op, CustomCallKind kind) {
  if (target_kind(op) != kind) return false;
  if (op.operands.size() != 1 || op.results.size() != 1)
    unsupported_manual(op, "its entries and exits have one operand and one result");
  return true;
}

/// True for an op that can be computed a second time.
bool can_copy(const ir::Op& op) {
  const ops::OpDef& def = ops::op(op.code);
  return op.regions.empty() && !op.results.empty() && !def.has_effect && !def.is_random && !target_kind(op);
}

class BlockReader {
 public:
  explicit BlockReader(const ir::Region& block) : ops_(block.ops), part_of_(ops_.size()) {
    std::iota(part_of_.begin(), part_of_.end(), size_t{0});
  }

  std::vector<ManualRegion> run() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (const ValueId id : ops_[i].results) defined_by_[id] = i;
      read(i);
    }
    std::map<size_t, ManualRegion> found;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (roles_.count(i) == 0) continue;
      ManualRegion& region = found[root(i)];
      (roles_[i] == Role::kEntry ? region.entries : roles_[i] == Role::kExit ? region.exits : region.body).push_back(i);
    }
    std::vector<ManualRegion> out;
    for (auto& [first, region] : found) {
      copy_what_it_needs(region);
      out.push_back(std::move(region));
    }
    return out;
  }

 private:
  enum class Role { kEntry, kInside, kExit };

  size_t root(size_t i) {
    while (part_of_[i] != i) i = part_of_[i] = part_of_[part_of_[i]];
    return i;
  }

  void read(size_t i) {
    const ir::Op& op = ops_[i];
    if (is_edge(op, CustomCallKind::kFullToShard)) {
      roles_[i] = Role::kEntry;
      shards_[op.results[0]] = i;
      return;
    }
    bool on_shards = false;
    for (const ValueId id : used_values(op)) {
      const auto shard = shards_.find(id);
      if (shard == shards_.end()) continue;
      on_shards = true;
      part_of_[root(i)] = root(shard->second);
    }
    if (is_edge(op, CustomCallKind::kShardToFull)) {
      if (!on_shards) unsupported_manual(op, "what leaves it is not computed in it");
      roles_[i] = Role::kExit;
    } else if (on_shards) {
      if (ops::op(op.code).ends_function || i + 1 == ops_.size())
        unsupported_manual(op, "its shards leave through @SPMDShardToFullShape");
      roles_[i] = Role::kInside;
      for (const ValueId id : op.results) shards_[id] = i;
    }
  }

  void copy_what_it_needs(ManualRegion& region) {
    std::set<size_t> needed;
    std::vector<size_t> open = region.body;
    while (!open.empty()) {
      const size_t user = open.back();
      open.pop_back();
      for (const ValueId id : used_values(ops_[user])) {
        if (shards_.count(id) != 0) continue;
        const auto definition = defined_by_.find(id);
        if (definition == defined_by_.end() || !can_copy(ops_[definition->second]))
          unsupported_manual(ops_[user], "a value that it reads comes in through @SPMDFullToShardShape");
        if (needed.insert(definition->second).second) open.push_back(definition->second);
      }
    }
    for (const size_t i : needed) region.copied.push_back(ops_[i]);
  }

  const std::vector<ir::Op>& ops_;
  std::vector<size_t> part_of_;  ///< union-find over ops
  std::unordered_map<size_t, Role> roles_;
  std::unordered_map<ValueId, size_t> defined_by_;
  std::unordered_map<ValueId, size_t> shards_;  ///< the op that makes each shard
};

}  // namespace

std::optional<CustomCallKind> target_kind(const ir::Op& op) {
  const ops::CustomCallDef* target = ops::find_custom_call(op);
  return target == nullptr ? std::nullopt : std::optional(target->kind);
}

void unsupported_manual(const ir::Op& op, std::string_view why) {
  ir::fail("unsupported_attribute", op.location,
           "this manual computation in the older notation is not supported: " + std::string(why));
}

std::vector<ManualRegion> find_manual_regions(const ir::Region& block) {
  const bool has_any = std::any_of(block.ops.begin(), block.ops.end(), [](const ir::Op& op) {
    const auto kind = target_kind(op);
    return kind == CustomCallKind::kFullToShard || kind == CustomCallKind::kShardToFull;
  });
  return has_any ? BlockReader(block).run() : std::vector<ManualRegion>();
}

}  // namespace meshd::program
