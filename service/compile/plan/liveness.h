// Liveness: in which ranges of time each value of a plan under construction is live.
//
// Times number the steps in plan order, nested blocks included (the flattened schedule of XLA's HloLiveRange):
//
// 1. An argument is defined at time -1. A result of the program is used for ever.
// 2. A block has a time before its first step and one behind its last. A step defines its results and uses its
//    operands at its own time. The parallel copy at the end of a loop's body has one time.
// 3. A value is live from its first definition to its last use. Ranges are closed: the operand and the result of a
//    step touch at the step's time, and may share memory there only if the kernel works in place (`may_touch`).
// 4. A value from outside a loop that the loop reads is live to the loop's end.
// 5. A variable that a loop carries is live in three pieces: from its first value through the condition; in the body
//    up to its last reader there; behind the loop. In the hole the body's result may be written over it.
// 6. A result of a case is live from the copy in each branch to that branch's end, and behind the case.
//
// Example: x is 1000xf32. n = 0; v = x; while (n < 3) { n += 1; v += v }; return v.
//   1 block, 2 fill n, 3 copy x to v, 4 loop
//     5 condition, 6 compare, 7 end;  8 body, 9 add n, 10 add v (result r), 11 parallel copy, 12 end
//   13 end of the loop, 14 end of the block
// Out: v is live in [3, 7], [8, 10] and [13, end], r in [10, 11]. They touch at 10, where the add works in place, so
// r is written over v: one buffer of 4,000 bytes, no copy in the loop.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "service/compile/plan/plan_builder.h"

namespace meshd::compile {

inline constexpr int64_t kForever = INT64_MAX / 4;

/// Closed range of times in which `value` holds bytes that are still read.
struct LiveRange {
  LocalId value = -1;
  int64_t start = 0;
  int64_t end = 0;
};

struct Liveness {
  /// By root value; empty: never stored.
  std::vector<std::vector<LiveRange>> of;
  /// Time in which memory is kept although nothing is live in it (variables around their loops), by root value:
  /// {start, end}, end < start: none.
  std::vector<std::pair<int64_t, int64_t>> reserved;
  /// (operand's root, result, time): the step at this time may write the result over the operand.
  std::set<std::tuple<LocalId, LocalId, int64_t>> may_touch;
  /// The same pairs in order of time, and copies.
  struct Pair {
    LocalId from;
    LocalId to;
    int64_t time;
  };
  std::vector<Pair> in_place;
  /// Constants that some step reads from memory.
  std::vector<LocalId> constants;
};

/// Sets the times of all steps and blocks.
Liveness analyze_liveness(PlanBuilder& builder);

}  // namespace meshd::compile
