#include "service/jobs/job_runner.h"

#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"
#include "service/jobs/stored/environment.h"

namespace meshd::jobs {
namespace {

int64_t environment_id(storage::Catalog& catalog, const std::string& text) {
  int64_t id = 0;
  catalog.write([&](storage::Transaction& transaction) { id = transaction.environment_id(text); });
  return id;
}

}  // namespace

JobRunner::JobRunner(storage::Store& store, arrays::ArrayStore& arrays, compile::Compiler& compiler,
                     device::Executor& engine, sessions::SessionStore& sessions, effects::EffectLog& log,
                     effects::InfeedQueues& infeeds, effects::CallbackStore& callbacks, const core::Clock& clock,
                     RunnerOptions options)
    : store_(store),
      arrays_(arrays),
      compiler_(compiler),
      engine_(engine),
      sessions_(sessions),
      log_(log),
      infeeds_(infeeds),
      callbacks_(callbacks),
      clock_(clock),
      options_(std::move(options)),
      unsent_(options_.memory != nullptr ? core::MemoryLedger::create(options_.memory->limit_bytes()) : nullptr),
      machine_limits_(store.catalog(), engine.threads()),
      environment_(environment_id(store.catalog(), environment_text(options_.build, compiler.settings()))),
      places_(options_.queue),
      background_(options_.background_threads, clock) {}

JobRunner::~JobRunner() {
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
  }
  stop_running(Stop::kAll);
  changed_.notify_all();
}

JobResult JobRunner::run(JobRequest request, const ResultEncoder& encode, const core::WaiterRef& waiter) {
  // Counted from here on: the end of the server waits for those that it did not refuse.
  const Entered entered(*this);
  JobRef job = prepare(std::move(request));
  job->encode = encode;
  accept(job, false);
  return finish(job, waiter);
}

JobRunner::Entered::Entered(JobRunner& runner) : runner_(runner) {
  const std::lock_guard held(runner_.mutex_);
  if (runner_.stopping_) throw draining();
  ++runner_.entered_;
}

JobRunner::Entered::~Entered() {
  {
    const std::lock_guard held(runner_.mutex_);
    --runner_.entered_;
  }
  runner_.changed_.notify_all();
}

JobResult JobRunner::finish(const JobRef& job, const core::WaiterRef& waiter) {
  {
    const std::lock_guard held(mutex_);
    ++counters_.running;
  }
  // It is accepted: whatever happens from here on it ends, and those behind it in its session go on.
  try {
    JobResult result = execute(job, waiter);
    const std::lock_guard held(mutex_);
    --counters_.running;
    return result;
  } catch (const core::Error& error) {
    fail(*job, error);
    const std::lock_guard held(mutex_);
    --counters_.running;
    throw;
  } catch (const std::exception& error) {
    fail(*job, core::Error("internal", "the job failed on our side").with_internal(error.what()));
    const std::lock_guard held(mutex_);
    --counters_.running;
    throw;
  }
}

void JobRunner::note_end(const Job& job, const core::Error* error, int64_t effects) {
  const double job_ms = core::milliseconds_between(job.accepted, clock_.steady());
  {
    const std::lock_guard held(mutex_);
    counters_.effects_appended += effects;
    if (error != nullptr) {
      ++(error->code() == core::ErrorCode("cancelled") ? counters_.cancelled : counters_.failed);
    } else {
      ++counters_.done;
      counters_.queue_seconds.add(job.timings.queue_ms / 1000);
      counters_.run_seconds.add(job.timings.run_ms / 1000);
      counters_.commit_seconds.add(job.timings.commit_ms / 1000);
      counters_.job_seconds.add(job_ms / 1000);
    }
  }
  try {
    if (options_.on_end)
      options_.on_end({job.row, job.in_background, job.timings, job_ms, error, job.request.traceparent});
  } catch (const std::exception&) {
    // No memory for the line of a log: the job has ended as it has.
  }
}

bool JobRunner::is_stopping() const {
  const std::lock_guard held(mutex_);
  return stopping_;
}

JobCounters JobRunner::counters() const {
  const std::lock_guard held(mutex_);
  JobCounters counters = counters_;
  counters.waiting = waiting_.size();
  return counters;
}

core::MemoryLedger::Stats JobRunner::file_memory() const {
  core::MemoryLedger::Stats out;
  if (unsent_ != nullptr) out = unsent_->stats()[static_cast<size_t>(core::MemoryAccount::kAnswers)];
  out.name = "files";
  return out;
}

QueueRoom JobRunner::queue_room(const std::string& principal) const {
  const std::lock_guard held(mutex_);
  return {places_.left(principal), places_.limits().principal, places_.of_principal(principal)};
}

}  // namespace meshd::jobs
