// Where one rank keeps the arena of a run over several ranks: room for the shards that its own devices hold.
//
// A plan lays out the arena for all shards. A rank touches the ranges of its own, and some of what is between them is
// nobody's there. Ranges that overlap (values that live at different times) stay together; gaps go.
//
// 1. The ranges of held shards, by where they begin.
// 2. Ranges that overlap or touch are one.
// 3. These follow each other from 0: each keeps its order and its length, so what overlapped before overlaps now, and
//    nothing else does.
//
// Example: two ranks of two devices; slot 0 has four shards of 128 bytes at 0, slot 1 has two of 256 at 0 (it lives
// later), slot 2 one of 64 at 512. Rank 1 holds [256, 512) of slot 0 and of slot 1 and [512, 576) of slot 2.
// Out: 320 bytes; slot 0 has its shards 2 and 3 at 0 and 128, slot 1 its shard 1 at 0, slot 2 at 256.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "service/compile/plan/plan.h"
#include "service/device/active_set.h"
#include "service/device/engine.h"

namespace meshd::device {

struct LocalArena {
  int64_t bytes = 0;
  std::vector<int64_t> offsets;  ///< by pointer (Slot::first_pointer + shard); -1: not in this arena
  /// By table and shard, of tables that have steps with workspaces: how many shards before it the rank holds.
  std::vector<std::vector<int32_t>> workspace_places;
  int64_t scratch_bytes = 0;  ///< as PlanMemory::scratch, with workspaces for the rank's own shards alone
  /// What the rank allocates or is given for a run: this arena, the arguments and own buffers of its devices, and the
  /// scratch. Rank 0 has all arguments and all results but for what is apart.
  int64_t planned_bytes = 0;
};

/// For the devices of `owners.rank`. Pure.
LocalArena local_arena(const compile::Plan& plan, const Ownership& owners, const ApartShards& apart = {});

/// Of a run on these devices (ids, in flat order).
Ownership ownership_of(const EngineOptions& options, std::span<const int64_t> devices);

}  // namespace meshd::device
