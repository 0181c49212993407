// What a run leaves to be stored. Private to service/jobs/commit.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "service/jobs/commit/commit.h"

namespace meshd::jobs {

struct Commit::Outputs {
  std::vector<std::pair<arrays::ArrayRef, arrays::NewShards>> stored;  ///< new arrays
  std::vector<arrays::ArrayStore::Update> updates;
  /// Shards that other processes hold.
  struct Left {
    bool is_update = false;
    size_t place = 0;  ///< in `stored` or `updates`
    size_t result = 0;
    std::vector<int64_t> plan_shards;  ///< by shard of the array
  };
  std::vector<Left> left;
  std::optional<storage::PendingBlobs> left_of_updates;  ///< until they are committed
};

}  // namespace meshd::jobs
