// Buffer assignment: which values share a slot, and at which offset of the arena each slot is. As in XLA's
// BufferAssignment, live ranges decide and aliases come first; offsets are packed greedily by size.
//
// Invariant: two values share a slot only if they have the same bytes and shards, both may be written, at most one is
// an argument, they are not variables of one loop (which are exchanged one after the other), and no live range of one
// overlaps one of the other. Ranges may touch at a step whose kernel works in place, if shard i of one has the memory
// of shard i of the other.
//
// A union-find over the stored values; each rule unites two sets where the invariant allows it:
// 1. A loop's variable takes the memory of its initial value.
// 2. A result takes the memory of the argument that is donated to it.
// 3. The body's result is written into the loop's variable (in place), or into a second buffer that is exchanged with
//    the variable after each iteration.
// 4. What a branch returns is written where the case's result is.
// 5. A step writes in place of an operand that dies there; a copy vanishes.
// 6. Slots that are exchanged live equally long; if one may leave the run as a result, each may.
// 7. A result that has no argument's memory yet takes any donated argument of its size that is dead by then.
// 8. Slots get storage: the argument's buffer, a buffer of its own (results), or a range of the arena.
// 9. Arena slots, largest first, each go into the tightest gap between slots that are live at the same time, else
//    behind them (greedy by size for offsets: Pisarchyk and Lee 2020; XLA: GlobalDecreasingSizeBestFitHeap).
//
// Example for 3: a loop over v, 16x16xf32, whose body is a transpose, which cannot work in place. In: v [3, 7], [8, 10]
// and [13, end], t [10, 11], the second buffer [11, 12], 1,024 bytes each. v and t overlap at 10; t and the second
// buffer touch at their copy. Out: two slots, 2,048 bytes, exchanged after each iteration; no copy in the loop.
// Example for 9: README.md (six transposes in an arena of two slots).
#pragma once

#include <cstdint>
#include <vector>

#include "service/compile/plan/plan_builder.h"

namespace meshd::compile {

struct BufferAssignment {
  std::vector<Slot> slots;
  std::vector<SlotId> slot_of;       ///< by value that is a root; -1: not stored
  std::vector<std::byte> constants;  ///< from offset 0; the plan aligns them
  int64_t arena_bytes = 0;
  int64_t device_arena_bytes = 0;  ///< one shard of each arena slot, the most that are live at once
};

/// Assigns every stored value a slot and marks carried values that are written in place. `donated`: by argument.
BufferAssignment assign_buffers(PlanBuilder& builder, const std::vector<bool>& donated);

}  // namespace meshd::compile
