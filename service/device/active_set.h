// Which devices take part in what is being executed. All of them, until a condition differs between devices; then the
// block inside runs for those whose condition says so, and the others keep what they have.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "service/compile/plan.h"

namespace meshd::device {

/// What a run's process owns: by flat device, whether it is ours, and its rank.
struct Ownership {
  std::vector<int> rank_of_device;
  int rank = 0;
  bool is_alone = true;  ///< every device is ours
};

/// One thread at a time.
class ActiveSet {
 public:
  /// All devices.
  ActiveSet(const compile::Plan& plan, const Ownership& owners);
  /// Those of `outer` for which `is_in[flat device]`.
  ActiveSet(const ActiveSet& outer, std::span<const char> is_in);

  /// Shards of a table that an active device of this process holds.
  std::span<const int32_t> shards(compile::TableId table);
  [[nodiscard]] bool is_active(int64_t device) const { return active_[static_cast<size_t>(device)] != 0; }
  [[nodiscard]] bool is_everybody() const { return is_everybody_; }
  /// The first active device that holds a shard, whoever's it is; -1: none.
  [[nodiscard]] int64_t holder(compile::TableId table, int64_t shard) const;
  /// True when an active device of rank `rank` holds the shard.
  [[nodiscard]] bool is_held_by(int rank, compile::TableId table, int64_t shard) const;

 private:
  const compile::Plan* plan_;
  const Ownership* owners_;
  std::vector<char> active_;  // by flat device
  bool is_everybody_ = true;
  std::map<compile::TableId, std::vector<int32_t>> shards_;
};

}  // namespace meshd::device
