// What jobs may take, and whom their ends are told.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "service/core/error.h"
#include "service/core/memory_ledger.h"
#include "service/jobs/job_request.h"
#include "service/jobs/queue/queue_places.h"
#include "storage/rows/rows.h"

namespace meshd::jobs {

/// A program made ready for devices that it was not ready for before (behaviour S39).
struct CompileNote {
  std::string function;  ///< name of the module
  int64_t devices = 1;
  std::string arguments;  ///< types, tokens left out: "4x4xf32, f32"
};

/// A job that is over. References last for the call.
struct JobEnd {
  const storage::JobRow& row;
  bool in_background = false;
  JobTimings timings;                  ///< as far as it came
  double job_ms = 0;                   ///< from accepted to over
  const core::Error* error = nullptr;  ///< null: done
  std::string_view traceparent = {};   ///< of the request that it came with; empty: none, or from before a restart
};

struct RunnerOptions {
  core::MemoryLedgerRef memory = nullptr;  ///< for what jobs hold while they wait, and answers; null: not counted
  std::string build;                       ///< what names this build, for the environment that jobs record
  QueueLimits queue;                       ///< background jobs that wait to be started
  int background_threads = 4;              ///< that commit
  /// Slots of background jobs that run at once. A principal without a running job may always start one more, and a job
  /// that waited for the jobs before it or for its client, which releases the slot, takes one again without waiting:
  /// the count may exceed the limit.
  int background_jobs = 4;
  int started_limit = 64;        ///< background jobs of one principal that have started, are not over and not held
  int foreground_waits = 256;    ///< requests that may wait, at once, for infeeds and replies of their clients
  int64_t step_budget = 0;       ///< steps a job may execute; 0: any number
  int64_t operation_budget = 0;  ///< operations a job may execute, by the plan's estimate; 0: any number
  int64_t byte_budget = 0;       ///< bytes its steps may read and write, by the plan's estimate; 0: any number
  std::chrono::milliseconds longest{std::chrono::hours(1)};  ///< a job without a deadline of its own ends here
  /// Called for each compilation, on the compiling thread; may be null.
  std::function<void(const CompileNote&)> on_compile = nullptr;
  /// Called at the end of each job, on the thread that ended it; may be null.
  std::function<void(const JobEnd&)> on_end = nullptr;
};

}  // namespace meshd::jobs
