// What a start takes up again, and what a stop puts back: jobs that are accepted and not over.
#pragma once

#include <chrono>
#include <functional>

#include "service/arrays/array_store.h"
#include "service/jobs/admission/admission.h"
#include "service/jobs/job.h"
#include "service/jobs/live_jobs.h"
#include "service/jobs/queue/job_queue.h"
#include "service/jobs/queue/job_waits.h"
#include "service/jobs/recovery/drain_gate.h"
#include "service/jobs/stored/stored_job.h"
#include "storage/store.h"

namespace meshd::jobs {

/// How the rows of jobs are read.
struct RowReading {
  StoredJobSources sources;
  std::function<ResultEncoder(const ResultForm&)> encoder;
  /// Reads a row that was written before there was a stored form (JobRow::request_version 0).
  std::function<JobRequest(const storage::JobRow&)> read_old_row;
};

/// recover() once, at start; the rest from any thread.
class Recovery {
 public:
  Recovery(storage::Catalog& catalog, Admission& admission, LiveJobs& live, JobWaits& waits, JobQueue& queue,
           DrainGate& gate)
      : catalog_(catalog), admission_(admission), live_(live), waits_(waits), queue_(queue), gate_(gate) {}

  /// Jobs that a crash or a stop left queued are queued again, in the order of their sessions. What a killed server
  /// left running was made queued by storage/recovery.
  void recover(const RowReading& reading);
  /// Nobody is let in, no job starts and none begins to wait for its client from now on.
  void stop();
  /// All jobs end, those too that are accepted only now.
  void stop_all();
  /// After stop(): ends jobs that wait for their clients, waits until running ones are over or the time is up, and ends
  /// those that are left. False: a run did not end a second after it was cancelled; its job is put back all the same.
  bool drain(std::chrono::milliseconds time);

 private:
  JobRef recover_job(const storage::JobRow& row, const RowReading& reading);
  /// A job that cannot run any more: it keeps why.
  JobRef keep_failure(const storage::JobRow& row, const core::Error& error);
  void put_back_running();

  storage::Catalog& catalog_;
  Admission& admission_;
  LiveJobs& live_;
  JobWaits& waits_;
  JobQueue& queue_;
  DrainGate& gate_;
};

}  // namespace meshd::jobs
