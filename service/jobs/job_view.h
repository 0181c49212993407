// What clients see of jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "service/device/engine.h"
#include "storage/rows/rows.h"

namespace meshd::jobs {

/// What a job waits for from its client.
struct ClientWait {
  std::string queue;    ///< an entry of this queue; or
  int64_t request = 0;  ///< the reply to the callback request of this number
};

/// A job as GET shows it.
struct JobView {
  storage::JobRow row;
  std::optional<device::RunProgress> progress;  ///< while it is queued or running in this process
  int64_t effect_count = 0;                     ///< so far, committed or not
  std::optional<ClientWait> waits = std::nullopt;
  std::string environment = {};  ///< that JobRow::environment is the number of; empty: a build that did not say

  [[nodiscard]] bool is_over() const { return storage::is_over(row.state); }
};

/// How many more background jobs of a principal may wait, of how many, and how many of its jobs wait.
struct QueueRoom {
  int64_t left = 0, limit = 0, waiting = 0;
};

}  // namespace meshd::jobs
