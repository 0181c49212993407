// Which ranks hold which shards of a plan's values, for a run on given devices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "service/compile/plan/plan.h"

namespace meshd::hosts {

/// Devices are dealt to ranks in equal runs: 8 devices and 2 ranks give 0..3 and 4..7. By device id. Throws
/// invalid_argument where they do not divide.
std::vector<int> ranks_of_devices(int64_t device_count, int rank_count);

/// One run. Immutable; any thread.
class Holders {
 public:
  /// `devices`: ids, in flat order.
  Holders(const compile::Plan& plan, std::span<const int64_t> devices, const std::vector<int>& rank_of_device);

  /// Ranks that own a device of the run, ascending.
  [[nodiscard]] const std::vector<int>& members() const { return members_; }
  [[nodiscard]] bool holds(int rank, compile::TableId table, int64_t shard) const;
  /// The rank that gives a result's shard to rank 0: that of the first device which holds it; nothing where rank 0 has
  /// it.
  [[nodiscard]] std::optional<int> sender(compile::TableId table, int64_t shard) const;

 private:
  const compile::Plan& plan_;
  std::vector<int> rank_of_;  // by flat device
  std::vector<int> members_;
};

}  // namespace meshd::hosts
