// Sharding search: which shardings of the unannotated arguments make a program cheapest. Explains the alternatives;
// runs none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "service/compile/explain/explain.h"

namespace meshd::compile {

/// What a device has to do; loops counted once.
struct Cost {
  double flops = 0;
  double bytes_touched = 0;
  int64_t bytes_moved = 0;
  int64_t peak_bytes = 0;
  /// flops at 50 G/s, bytes of memory at 10 GB/s and bytes from other devices at 2 GB/s, one after the other: a
  /// yardstick to compare by, no prediction.
  [[nodiscard]] double seconds() const;
};

struct Suggestion {
  /// Token-free; nothing: left to propagation. Those that the text or the request fixes are unchanged.
  std::vector<std::optional<sharding::TensorSharding>> in_shardings;
  std::vector<size_t> changed;  ///< arguments that are given a sharding here
  Cost cost;
  std::vector<std::string> reasons;  ///< compared with the request, one for each quantity that differs
};

struct Suggestions {
  Cost now;
  std::vector<Suggestion> better;  ///< cheapest first; empty: nothing that was tried is cheaper
  int64_t tried = 0;
  bool is_incomplete = false;  ///< `stop` returned true, or there were more alternatives than are tried
};

/// Tries at most kMostTrials alternatives: for each free argument, largest first, every sharding of one or two of its
/// dimensions by axes that divide them, and replication; a greedy choice that keeps the best for the next argument.
/// Throws invalid_request where there is no mesh, and what the stages throw for the request itself.
Suggestions suggest(const ParsedRef& parsed, const LowerRequest& request, const PlanSettings& settings,
                    const std::function<bool()>& stop);

inline constexpr int64_t kMostTrials = 300;
inline constexpr size_t kMostSuggestions = 5;

}  // namespace meshd::compile
