// The execution of an accepted job: from its turn to the outcome of its run.
#pragma once

#include <cstdint>
#include <memory>

#include "service/arrays/array_store.h"
#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "service/core/waits/waiter.h"
#include "service/device/engine.h"
#include "service/jobs/execution/answer_memory.h"
#include "service/jobs/execution/argument_binder.h"
#include "service/jobs/execution/machine_limits.h"
#include "service/jobs/execution/run_server.h"
#include "service/jobs/job.h"
#include "service/jobs/queue/job_waits.h"
#include "service/jobs/queue/waiting_memory.h"
#include "service/jobs/runner_options.h"
#include "storage/catalog.h"

namespace meshd::jobs {

/// What a run gave, which is to be committed.
struct Executed {
  device::RunOutcome outcome;
  JobResult result;  ///< without its results, which the commit lays out
  /// Memory that the job has planned, which arrays keep out of until its results have theirs.
  std::shared_ptr<arrays::LentMemory> lent;
};

/// Any thread but the engine's; a job is executed once, by one thread or fiber.
class Execution {
 public:
  Execution(storage::Catalog& catalog, arrays::ArrayStore& arrays, compile::Compiler& compiler,
            device::Executor& engine, RunServer& server, JobWaits& waits, WaitingMemory& waiting, AnswerMemory& answers,
            const core::Clock& clock, const RunnerOptions& options)
      : catalog_(catalog),
        arrays_(arrays),
        compiler_(compiler),
        engine_(engine),
        binder_(arrays, engine),
        server_(server),
        waits_(waits),
        waiting_(waiting),
        answers_(answers),
        clock_(clock),
        options_(options),
        machine_limits_(catalog, engine.threads()) {}

  /// Waits until the job may read its arrays, runs its program and takes what comes out. Throws what ends the job.
  Executed execute(Job& job, const core::WaiterRef& waiter);

 private:
  using Lent = std::shared_ptr<arrays::LentMemory>;

  void wait_for_turn(Job& job, const core::WaiterRef& waiter);
  void make_ready(Job& job, const core::WaiterRef& waiter);
  device::RunOutcome run(Job& job, const core::WaiterRef& waiter, Lent& lent);
  [[nodiscard]] device::RunRequest run_request(Job& job, Lent& lent);
  device::RunOutcome run_on_engine(Job& job, device::RunRequest request, const core::WaiterRef& waiter);
  /// What the answer says beside results and effects.
  void describe(const Job& job, const device::RunOutcome& outcome, JobResult& result);

  storage::Catalog& catalog_;
  arrays::ArrayStore& arrays_;
  compile::Compiler& compiler_;
  device::Executor& engine_;
  ArgumentBinder binder_;
  RunServer& server_;
  JobWaits& waits_;
  WaitingMemory& waiting_;
  AnswerMemory& answers_;
  const core::Clock& clock_;
  const RunnerOptions& options_;
  MachineLimits machine_limits_;
};

}  // namespace meshd::jobs
