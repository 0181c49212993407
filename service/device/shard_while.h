// Iterations of a loop that are executed shard by shard (compile/plan/shard_whiles.h), while they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "service/compile/plan/plan.h"

namespace meshd::device {

struct ShardWhile {
  const compile::Step& step;
  const compile::ShardWhileStep& form;
  int64_t most = 1;         ///< iterations, unless the condition ends them
  int32_t first_shard = 0;  ///< whose outcome is kept; all have the same
  /// The run's table of pointers, by lane: but for what is the thread's own, and for what the loop has exchanged there.
  std::vector<std::vector<std::byte*>> pointers = {};

  // The outcome.
  int64_t iterations = 0;
  bool is_over = false;
  std::vector<std::byte> carried = {};  ///< replicated values: Own::is_carried, in this order, without gaps
};

}  // namespace meshd::device
