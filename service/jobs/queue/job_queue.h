// Background jobs: they wait in a fair queue until they are ready, without a thread. A job is ready once earlier jobs
// of its session no longer update the arrays that it reads, and the session is not halted. Then it takes a slot, and a
// fiber executes it; where it waits again (for the jobs before it or for its client) it releases the slot.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "service/core/clock.h"
#include "service/core/waits/waiter.h"
#include "service/jobs/job.h"
#include "service/jobs/queue/fair_queue.h"
#include "service/jobs/queue/fiber_pool.h"
#include "service/jobs/queue/queue_places.h"
#include "service/jobs/runner_options.h"

namespace meshd::jobs {

/// Any thread. Its lock comes before those of session queues and timers; no job is started or ended under it.
class JobQueue {
 public:
  /// `run` executes a started job to its end, on its fiber, and throws nothing. `fail` ends one that has not started.
  struct Calls {
    std::function<void(const JobRef&, const core::WaiterRef&)> run;
    std::function<void(Job&, const core::Error&)> fail;
  };
  JobQueue(const RunnerOptions& options, const core::Clock& clock, Calls calls);

  /// A place for a job that is to be accepted. Throws queue_full, draining.
  void take_place(const std::string& principal, const std::string& session);
  /// The same for one that was accepted before a restart, whatever the limits are.
  void add_place(const std::string& principal, const std::string& session);
  /// It was not accepted.
  void give_back_place(const std::string& principal, const std::string& session);

  /// An accepted job, which has a place, waits from here on; DELETE and its deadline take it out.
  void enqueue(const JobRef& job);
  /// Starts waiting jobs as long as one may start.
  void start_ready();
  /// Ends a job that has not started; false: it has.
  bool end_waiting(const JobRef& job, const core::Error& reason);
  /// Releases the job's slot for a wait that may take long; a job that is held does not count as started either.
  void give_slot(Job& job);
  void take_slot(Job& job);
  /// No job starts from now on, and no place is given.
  void stop();

  [[nodiscard]] int64_t waiting() const;
  [[nodiscard]] QueueRoom room(const std::string& principal) const;

 private:
  using Counted = QueueEntry::Counted;
  /// Under the lock.
  [[nodiscard]] bool may_start(const std::string& principal) const;
  /// Out of its session's order a job starts only where it cannot have to wait for those that it passes.
  [[nodiscard]] static bool is_ready(const Job& job, bool is_first);
  /// Null: none may start.
  JobRef take_ready();
  /// Of a job that waits to be started. Under the lock.
  void set_deadline_timer(const JobRef& job);
  /// The time of a job that waited to be started is up.
  void end_late(const JobRef& job);
  /// Under the lock.
  void count(Job& job, Counted how);

  const int background_jobs_;
  const int started_limit_;
  const std::chrono::milliseconds longest_;
  const core::Clock& clock_;
  const Calls calls_;
  mutable std::mutex mutex_;
  FairQueue<JobRef> waiting_;
  QueuePlaces places_;
  /// Background jobs of a principal by how they count: kStarted and kRunning together; kRunning.
  struct Share {
    int started = 0, running = 0;
  };
  std::map<std::string, Share> shares_;
  int running_ = 0;
  bool stopping_ = false;
  FiberPool fibers_;  ///< last: its bodies use all of the above
};

}  // namespace meshd::jobs
