// The end of a job: the one transaction with all that it did, or with why it failed; then its last step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/core/clock.h"
#include "service/core/waits/waiter.h"
#include "service/device/engine.h"
#include "service/effects/effect_log.h"
#include "service/jobs/job.h"
#include "service/jobs/job_statistics.h"
#include "service/jobs/live_jobs.h"
#include "service/jobs/queue/job_queue.h"
#include "service/jobs/queue/job_waits.h"
#include "storage/store.h"

namespace meshd::jobs {

/// Any thread; a job is ended by who executes it, or by who has taken it out of the queue.
class Commit {
 public:
  /// `environment`: of this process, which the rows of its jobs record.
  Commit(storage::Store& store, arrays::ArrayStore& arrays, tensor::BufferPool& pool, effects::EffectLog& log,
         LiveJobs& live, JobWaits& waits, JobQueue& queue, JobStatistics& statistics, const core::Clock& clock,
         int64_t environment)
      : store_(store),
        arrays_(arrays),
        pool_(pool),
        log_(log),
        live_(live),
        waits_(waits),
        queue_(queue),
        statistics_(statistics),
        clock_(clock),
        environment_(environment) {}

  /// Ends a job whose run is over with `outcome`, in its session's order; completes `result`. Throws what ends the job
  /// otherwise; nothing of it has happened then, and fail() is to be called.
  void commit(Job& job, device::RunOutcome& outcome, JobResult& result, core::Waiter& waiter);
  /// Ends a job with this error, or puts it back where the server stops. Its end is durable when this returns: while
  /// the disk is full it waits, for ten seconds at most or until the server stops. Throws nothing but for lack of
  /// memory.
  void fail(Job& job, const core::Error& error, core::Waiter& waiter);

 private:
  /// What a run leaves to be stored.
  struct Outputs;
  void lay_out_update(const Job& job, const ArrayUpdate& update, const sharding::Layout& layout,
                      const std::vector<tensor::BufferRef>& output, JobValue& value, Outputs& outputs);
  /// Lays the results out as shards of arrays.
  Outputs lay_out(const Job& job, device::RunOutcome& outcome, JobResult& result);
  /// Shards that other processes hold are durable on their disks before rows name them.
  void store_left(Outputs& outputs, device::HeldResults& held);
  /// The one transaction. False: the session was halted in the meantime, and nothing is written.
  bool write_commit(Job& job, const arrays::ArrayStore::Prepared& prepared,
                    const std::vector<arrays::ArrayStore::Update>& updates, JobResult& result);
  void write_done(Job& job, const JobResult& result, storage::Transaction& transaction);
  /// Donated arrays that had no row are gone, and so is their memory.
  void consume_memory(Job& job);
  /// Donated arrays get back what the run did not overwrite; the others are spoilt.
  void return_taken(Job& job);
  /// The row of a job that a stop of the server ends is queued again.
  void put_back(Job& job);
  void write_failure(Job& job, const core::Error& error, core::Waiter& waiter);
  /// False: the disk is full.
  bool try_to_write_failure(Job& job, const core::Error& error);
  [[nodiscard]] std::string why_it_differs(const Job& job, const core::Error& error) const;
  /// kQueued: it runs again after a restart, and no later job of its session overtakes it.
  enum class Leave : uint8_t { kOver, kQueued };
  void leave(Job& job, Leave how);

  storage::Store& store_;
  arrays::ArrayStore& arrays_;
  tensor::BufferPool& pool_;
  effects::EffectLog& log_;
  LiveJobs& live_;
  JobWaits& waits_;
  JobQueue& queue_;
  JobStatistics& statistics_;
  const core::Clock& clock_;
  const int64_t environment_;
};

}  // namespace meshd::jobs
