// Waits of jobs: for their session and for their clients. Nothing polls: the awaited event notifies the waiter, and so
// does everything that ends the wait.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "service/core/clock.h"
#include "service/core/error.h"
#include "service/core/waits/waiter.h"
#include "service/jobs/job.h"
#include "service/jobs/queue/job_queue.h"
#include "service/jobs/runner_options.h"

namespace meshd::jobs {

/// Any thread; a job's waits are those of who executes it. A job that waits here gives its slot away, and takes one
/// again when it goes on.
class JobWaits {
 public:
  JobWaits(const core::Clock& clock, const RunnerOptions& options, JobQueue& queue)
      : clock_(clock), longest_(options.longest), foreground_limit_(options.foreground_waits), queue_(queue) {}

  /// What ends a job from outside: cancelled, disconnected client of a job without a row, deadline, stop of the server.
  [[nodiscard]] std::optional<core::Error> end_of(Job& job, const core::Waiter& waiter) const;
  /// Throws it.
  void throw_if_ended(Job& job, const core::Waiter& waiter) const;
  /// Throws for a job that waits for its session in vain: an earlier one was put back, the session closes halted, or it
  /// is halted while the server stops.
  void throw_if_never_next(const Job& job) const;
  /// Waits until `is_there` of the job's session queue; throws what ends the job before.
  void wait_for_session(Job& job, core::Waiter& waiter, const std::function<bool()>& is_there);
  /// Until nothing of its session is before it in what it commits.
  void wait_to_commit(Job& job, core::Waiter& waiter);
  /// For a wait that may take long, and behind it.
  void give_slot(Job& job) { queue_.give_slot(job); }
  void take_slot(Job& job) { queue_.take_slot(job); }
  /// The job waits for an infeed entry or a reply from here on. Throws draining, and queue_full where too many requests
  /// wait so.
  void begin_client_wait(Job& job, ClientWait wait);
  void end_client_wait(Job& job);

  /// No wait for a client begins any more.
  void stop();
  /// All jobs end, those too that are accepted only now.
  void stop_all() { all_end_ = true; }

 private:
  const core::Clock& clock_;
  const std::chrono::milliseconds longest_;
  const int foreground_limit_;
  JobQueue& queue_;
  std::atomic<bool> all_end_ = false;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;    ///< a leaf
  int foreground_ = 0;  ///< requests that wait for their clients
};

}  // namespace meshd::jobs
