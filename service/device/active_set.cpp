#include "service/device/active_set.h"

namespace meshd::device {

ActiveSet::ActiveSet(const compile::Plan& plan, const Ownership& owners)
    : plan_(&plan), owners_(&owners), active_(static_cast<size_t>(plan.device_count), 1) {}

ActiveSet::ActiveSet(const ActiveSet& outer, std::span<const char> is_in)
    : plan_(outer.plan_), owners_(outer.owners_), active_(outer.active_), is_all_(false) {
  for (size_t device = 0; device < active_.size(); ++device)
    active_[device] = active_[device] != 0 && is_in[device] != 0;
}

std::vector<int32_t> ActiveSet::held_shards(compile::TableId table, std::optional<int> rank) const {
  const compile::ShardTable& who = plan_->table(table);
  std::vector<char> held(static_cast<size_t>(who.count()), 0);
  for (size_t device = 0; device < active_.size(); ++device) {
    const int32_t shard = who.shard_of_device[device];
    if (shard >= 0 && active_[device] != 0 && (!rank || owners_->rank_of_device[device] == *rank))
      held[static_cast<size_t>(shard)] = 1;
  }
  std::vector<int32_t> list;
  for (size_t shard = 0; shard < held.size(); ++shard) {
    if (held[shard] != 0) list.push_back(static_cast<int32_t>(shard));
  }
  return list;
}

std::span<const int32_t> ActiveSet::shards(compile::TableId table) {
  const auto [found, is_new] = shards_.try_emplace(table);
  if (is_new) found->second = held_shards(table, owners_->rank);
  return found->second;
}

std::span<const int32_t> ActiveSet::shards_everywhere(compile::TableId table) {
  const auto [found, is_new] = everywhere_.try_emplace(table);
  if (is_new) found->second = held_shards(table, std::nullopt);
  return found->second;
}

int64_t ActiveSet::holder(compile::TableId table, int64_t shard) const {
  const compile::ShardTable& who = plan_->table(table);
  for (size_t device = 0; device < active_.size(); ++device) {
    if (active_[device] != 0 && who.shard_of_device[device] == shard) return static_cast<int64_t>(device);
  }
  return -1;
}

bool ActiveSet::is_held_by(int rank, compile::TableId table, int64_t shard) const {
  const compile::ShardTable& who = plan_->table(table);
  for (size_t device = 0; device < active_.size(); ++device) {
    if (active_[device] != 0 && owners_->rank_of_device[device] == rank && who.shard_of_device[device] == shard)
      return true;
  }
  return false;
}

}  // namespace meshd::device
