// Active sets: which devices take part in the block that a run executes (the active mask of SIMT hardware).
//
// Invariant: an inner set is part of the outer one. Devices that are not active keep the values that they have.
//
// 1. The program runs with all devices.
// 2. A loop whose condition differs between devices: the next iteration runs for those whose condition is true, and the
//    loop ends when none is left.
// 3. A branch on an index that differs: each branch that some device takes runs once, for the devices that take it.
// 4. A step runs for each shard that an active device of this process holds.
// 5. A collective that needs a shard which no active device holds ends the run.
//
// Example: mesh x=4, every device starts with i = 0, v = 1 and loops while i < device + 2: i += 1, v += v.
// Active: {0, 1, 2, 3} for two iterations, then {1, 2, 3}, {2, 3}, {3}. Out: i = 2, 3, 4, 5 and v = 4, 8, 16, 32.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "service/compile/plan/plan.h"

namespace meshd::device {

/// Which rank owns each device of a run, and which rank this process is.
struct Ownership {
  std::vector<int> rank_of_device;
  int rank = 0;
  bool is_alone = true;   ///< every device is ours
  bool is_member = true;  ///< some device is ours
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
  /// Shards of a table that an active device of any process holds.
  std::span<const int32_t> shards_everywhere(compile::TableId table);
  [[nodiscard]] bool is_all() const { return is_all_; }
  /// The first active device that holds a shard, of any rank; -1: none.
  [[nodiscard]] int64_t holder(compile::TableId table, int64_t shard) const;
  /// True when an active device of rank `rank` holds the shard.
  [[nodiscard]] bool is_held_by(int rank, compile::TableId table, int64_t shard) const;

 private:
  const compile::Plan* plan_;
  const Ownership* owners_;
  std::vector<char> active_;  // by flat device
  bool is_all_ = true;
  std::vector<int32_t> held_shards(compile::TableId table, std::optional<int> rank) const;

  std::map<compile::TableId, std::vector<int32_t>> shards_;
  std::map<compile::TableId, std::vector<int32_t>> everywhere_;
};

}  // namespace meshd::device
