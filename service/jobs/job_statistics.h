// Counts of jobs that ended, for metrics, and the call that tells each end.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "service/core/clock.h"
#include "service/core/error.h"
#include "service/core/histogram.h"
#include "service/jobs/runner_options.h"

namespace meshd::jobs {

struct Job;

inline constexpr double kEffectBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 1};
inline constexpr double kJobBounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 60, 600};

/// Jobs that ended, by how, and how long they took.
struct JobCounters {
  int64_t done = 0, failed = 0, cancelled = 0;
  int64_t running = 0, waiting = 0;
  /// Of jobs that are done: in the queues of their devices, on them, in the commit, and from accepted to acknowledged.
  core::Histogram queue_seconds{kJobBounds}, run_seconds{kJobBounds}, commit_seconds{kJobBounds},
      job_seconds{kJobBounds};
  int64_t effects_appended = 0;
  /// Of batches of effects that jobs stream: from the first effect to the commit.
  core::Histogram streamed_seconds{kEffectBounds};
};

/// Any thread.
class JobStatistics {
 public:
  JobStatistics(const core::Clock& clock, std::function<void(const JobEnd&)> on_end)
      : clock_(clock), on_end_(std::move(on_end)) {}

  /// Counts a job that is over, before anybody who waits for it sees that; null: it is done.
  void note_end(const Job& job, const core::Error* error, int64_t effects);
  /// A batch of streamed effects is durable so many seconds after the first of them happened.
  void note_streamed(double seconds);
  /// Without those that run or wait.
  [[nodiscard]] JobCounters counters() const;

 private:
  const core::Clock& clock_;
  const std::function<void(const JobEnd&)> on_end_;
  mutable std::mutex mutex_;  ///< a leaf
  JobCounters counters_;
};

}  // namespace meshd::jobs
