#include "service/hosts/holders.h"

#include <fmt/core.h>

#include <set>
#include <string>

#include "service/core/error.h"

namespace meshd::hosts {

std::vector<int> ranks_of_devices(int64_t device_count, int rank_count) {
  if (device_count % rank_count != 0) {
    throw core::Error("invalid_argument",
                      fmt::format("devices are dealt to ranks in equal runs: {} devices do not divide by {} ranks",
                                  device_count, rank_count));
  }
  std::vector<int> out;
  for (int64_t device = 0; device < device_count; ++device)
    out.push_back(static_cast<int>(device * rank_count / device_count));
  return out;
}

Holders::Holders(const compile::Plan& plan, std::span<const int64_t> devices, const std::vector<int>& rank_of_device)
    : plan_(plan) {
  for (const int64_t device : devices) rank_of_.push_back(rank_of_device.at(static_cast<size_t>(device)));
  const std::set<int> distinct(rank_of_.begin(), rank_of_.end());
  members_.assign(distinct.begin(), distinct.end());
}

bool Holders::holds(int rank, compile::TableId table, int64_t shard) const {
  const std::vector<int32_t>& held = plan_.table(table).shard_of_device;
  for (size_t device = 0; device < rank_of_.size(); ++device) {
    if (rank_of_[device] == rank && held[device] == shard) return true;
  }
  return false;
}

std::optional<int> Holders::sender(compile::TableId table, int64_t shard) const {
  const std::vector<int32_t>& held = plan_.table(table).shard_of_device;
  std::optional<int> first;
  for (size_t device = 0; device < rank_of_.size(); ++device) {
    if (held[device] != shard) continue;
    if (rank_of_[device] == 0) return std::nullopt;
    if (!first) first = rank_of_[device];
  }
  return first;
}

}  // namespace meshd::hosts
