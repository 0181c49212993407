// The parts that a JobRunner is composed of, and which uses which. Private to service/jobs.
#pragma once

#include "service/jobs/admission/admission.h"
#include "service/jobs/commit/commit.h"
#include "service/jobs/execution/answer_memory.h"
#include "service/jobs/execution/execution.h"
#include "service/jobs/execution/run_server.h"
#include "service/jobs/job_runner.h"
#include "service/jobs/job_statistics.h"
#include "service/jobs/live_jobs.h"
#include "service/jobs/queue/job_queue.h"
#include "service/jobs/queue/job_waits.h"
#include "service/jobs/queue/waiting_memory.h"
#include "service/jobs/recovery/drain_gate.h"
#include "service/jobs/recovery/recovery.h"

namespace meshd::jobs {

struct JobRunner::Parts {
  Parts(storage::Store& store, arrays::ArrayStore& arrays, compile::Compiler& compiler, device::Executor& engine,
        sessions::SessionStore& sessions, effects::EffectLog& log, effects::InfeedQueues& infeeds,
        effects::CallbackStore& callbacks, const core::Clock& clock, RunnerOptions given);

  /// Executes an accepted job to its end. Throws what the job fails with.
  JobResult finish(Job& job, const core::WaiterRef& waiter);
  void run_in_background(Job& job, const core::WaiterRef& waiter);

  const RunnerOptions options;
  storage::Catalog& catalog;
  const core::Clock& clock;
  arrays::ArrayStore& arrays;
  compile::Compiler& compiler;
  tensor::BufferPool& pool;
  const int64_t environment;  ///< of this process, for the rows of its jobs
  LiveJobs live;
  DrainGate gate;
  JobStatistics statistics;
  JobWaits waits;
  WaitingMemory waiting;
  AnswerMemory answers;
  Admission admission;
  RunServer server;
  Execution execution;
  Commit commit;
  Recovery recovery;
  JobQueue queue;  ///< last: the jobs that it starts use all of the above, which only refer to it
};

}  // namespace meshd::jobs
