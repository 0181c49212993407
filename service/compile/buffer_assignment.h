// Where every stored value lives: live ranges over nested blocks, values that share memory, arena offsets.
//
// Times number the steps in plan order; a block has a time before and behind its steps. A value is alive from the step
// that defines it to its last reader; what a loop reads from outside is alive to the loop's end. A variable that a loop
// carries is alive in three pieces: from its first value through the condition, in the body up to its last reader
// there, and behind the loop. In the hole between, the body's result may already be written into the same memory.
//
// Sharing, in this order: a loop's variable takes the memory of its initial value; a result takes the memory of the
// argument donated to it; the body's result is written into the variable itself (in place) or into a second buffer that
// is exchanged with it after each iteration; a branch's result is written where the branch's results go; steps write in
// place of operands that die there. Two values may touch at a step only where its kernel allows it.
#pragma once

#include <cstdint>
#include <vector>

#include "service/compile/plan_builder.h"

namespace meshd::compile {

struct BufferAssignment {
  std::vector<Slot> slots;
  std::vector<SlotId> slot_of;       ///< by value that is a root; -1: not stored
  std::vector<std::byte> constants;  ///< from offset 0; the plan aligns them
  int64_t arena_bytes = 0;
  int64_t device_arena_bytes = 0;          ///< one shard of each arena slot, the most that are alive at once
  std::vector<int64_t> written_arguments;  ///< donated arguments that steps write
};

/// Decides storage and marks carries as in place. `donated`: by argument.
BufferAssignment assign_buffers(PlanBuilder& builder, const std::vector<bool>& donated);

}  // namespace meshd::compile
