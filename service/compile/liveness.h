// Liveness: when each value of a plan under construction is live. buffer_assignment.h says what the times mean.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "service/compile/plan_builder.h"

namespace meshd::compile {

inline constexpr int64_t kForever = INT64_MAX / 4;

/// Closed range of times in which `value` holds something that is still read.
struct LiveRange {
  LocalId value = -1;
  int64_t start = 0;
  int64_t end = 0;
};

struct Liveness {
  /// By root value; empty: never stored.
  std::vector<std::vector<LiveRange>> of;
  /// Memory that must be kept though nothing is alive in it (variables round their loops), by root value: {start, end},
  /// end < start: none.
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
