// Large reductions over shards whose result several processes need: each makes a part of the result, and they give each
// other their parts (a reduce-scatter and an all-gather, as MPI's large all-reduces).
//
// Each element is still combined from all members in ascending position order, by one of the processes: bits do not
// depend on the parts.
//
// Example: 64 MiB on each of two processes, to be added up. In one piece each process receives 64 MiB and makes 64 MiB.
// In two parts each receives 32 MiB of the other's operand, makes 32 MiB, and receives the other 32 MiB of the result.
#pragma once

#include <cstdint>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Of a shard's work items and bytes, those that one of the processes makes.
struct CollectivePart {
  int64_t begin_item = 0;
  int64_t end_item = 0;
  int64_t begin_byte = 0;
  int64_t end_byte = 0;
};

/// Whether the shard can be made in parts, and is large enough.
bool has_parts(const Collective& collective, int64_t shard);

/// Whether so many processes, which lack so many of the shard's sources together, make it in parts: where that sends no
/// more bytes. The same on every process.
bool is_made_in_parts(const Collective& collective, int64_t shard, int64_t process_count, int64_t lacking);

/// That of process `number` of so many.
CollectivePart part_of(const Collective& collective, int64_t shard, int64_t number, int64_t process_count);

}  // namespace meshd::compile
