#include "service/jobs/job_runner.h"

#include <exception>
#include <utility>

#include "service/core/error.h"
#include "service/jobs/parts.h"
#include "service/jobs/stored/environment.h"

namespace meshd::jobs {
namespace {

int64_t environment_id(storage::Catalog& catalog, const std::string& text) {
  int64_t id = 0;
  catalog.write([&](storage::Transaction& transaction) { id = transaction.environment_id(text); });
  return id;
}

}  // namespace

JobRunner::Parts::Parts(storage::Store& store, arrays::ArrayStore& given_arrays, compile::Compiler& given_compiler,
                        device::Executor& engine, sessions::SessionStore& sessions, effects::EffectLog& log,
                        effects::InfeedQueues& infeeds, effects::CallbackStore& callbacks,
                        const core::Clock& given_clock, RunnerOptions given)
    : options(std::move(given)),
      catalog(store.catalog()),
      clock(given_clock),
      arrays(given_arrays),
      compiler(given_compiler),
      pool(*engine.pool()),
      environment(environment_id(store.catalog(), environment_text(options.build, compiler.settings()))),
      statistics(clock, options.on_end),
      waits(clock, options, queue),
      waiting(options.memory, store.catalog(), compiler, clock, waits),
      answers(options.memory, clock, waits),
      admission(store, arrays, compiler, sessions, live, waiting, clock, options,
                {engine.options().device_count, environment}),
      server(store.catalog(), log, infeeds, callbacks, waits, statistics, clock),
      execution(store.catalog(), arrays, compiler, engine, server, waits, waiting, answers, clock, options),
      commit(store, arrays, pool, log, live, waits, queue, statistics, clock, environment),
      recovery(store.catalog(), admission, live, waits, queue, gate),
      queue(options, clock,
            {[this](const JobRef& job, const core::WaiterRef& waiter) { run_in_background(*job, waiter); },
             [this](Job& job, const core::Error& error) {
               core::ThreadWaiter waiter;
               commit.fail(job, error, waiter);
             }}) {}

JobRunner::JobRunner(storage::Store& store, arrays::ArrayStore& arrays, compile::Compiler& compiler,
                     device::Executor& engine, sessions::SessionStore& sessions, effects::EffectLog& log,
                     effects::InfeedQueues& infeeds, effects::CallbackStore& callbacks, const core::Clock& clock,
                     RunnerOptions options)
    : store_(store),
      sessions_(sessions),
      log_(log),
      clock_(clock),
      parts_(std::make_unique<Parts>(store, arrays, compiler, engine, sessions, log, infeeds, callbacks, clock,
                                     std::move(options))) {}

JobRunner::~JobRunner() {
  parts_->recovery.stop();
  parts_->recovery.stop_all();
}

JobResult JobRunner::run(JobRequest request, const ResultEncoder& encode, const core::WaiterRef& waiter) {
  // Counted from here on: the end of the server waits for those that it did not refuse.
  const DrainGate::Counted waits = parts_->gate.enter();
  const JobRef job = parts_->admission.prepare(std::move(request));
  job->encode = encode;
  parts_->admission.accept(job, false);
  return parts_->finish(*job, waiter);
}

std::string JobRunner::start(JobRequest request, ResultEncoder encode) {
  const std::string principal = request.principal;
  const std::string session = request.session;
  const LiveJobs::Claim claim(parts_->live, principal, request.id);
  if (!request.id.empty() && store_.catalog().read([&](storage::Reader& reader) {
        return reader.job_state(request.id, principal).has_value();
      }))
    throw id_taken(request.id);
  parts_->queue.take_place(principal, session);
  JobRef job;
  try {
    job = parts_->admission.prepare(std::move(request));
    job->encode = std::move(encode);
    parts_->admission.accept(job, true);
  } catch (...) {
    parts_->queue.give_back_place(principal, session);
    throw;
  }
  parts_->queue.enqueue(job);
  return job->row.id;
}

JobResult JobRunner::Parts::finish(Job& job, const core::WaiterRef& waiter) {
  const DrainGate::Counted running = gate.run();
  // It is accepted: whatever happens from here on it ends, and those behind it in its session go on.
  std::optional<core::Error> failure;  // fail() may wait, which no catch block may
  std::exception_ptr thrown;
  try {
    Executed done = execution.execute(job, waiter);
    commit.commit(job, done.outcome, done.result, *waiter);
    hold_results(job.request, done.result);
    return std::move(done.result);
  } catch (const core::Error& error) {
    failure = error;
    thrown = std::current_exception();
  } catch (const std::exception& error) {
    failure = core::Error("internal", "the job failed on our side").with_internal(error.what());
    thrown = std::current_exception();
  }
  commit.fail(job, *failure, *waiter);
  std::rethrow_exception(thrown);
}

void JobRunner::Parts::run_in_background(Job& job, const core::WaiterRef& waiter) {
  job.row.state = storage::JobState::kRunning;
  job.row.started = clock.wall();
  // Where it is not written (the disk is full, the end of the server has put the row back), the job ends from kQueued.
  catalog.write_async(
      [row = job.row](storage::Transaction& transaction) { static_cast<void>(transaction.update_job(row)); },
      [](const std::exception_ptr&) {});
  try {
    finish(job, waiter);
  } catch (const std::exception&) {
    // Commit::fail has written it to the job's row
  }
}

void JobRunner::recover(const RecoverySources& sources) {
  const RowReading reading{
      {store_, parts_->arrays, sources.programs, parts_->compiler, parts_->pool, sources.processes},
      sources.encoder,
      sources.read_old_row};
  parts_->waiting.read_rows_with(reading.sources);
  parts_->recovery.recover(reading);
}

bool JobRunner::drain(std::chrono::milliseconds time) {
  parts_->recovery.stop();
  watchers_.notify_all();
  return parts_->recovery.drain(time);
}

bool JobRunner::is_stopping() const { return parts_->gate.is_closed(); }

JobCounters JobRunner::counters() const {
  JobCounters counters = parts_->statistics.counters();
  counters.running = parts_->gate.running();
  counters.waiting = parts_->queue.waiting();
  return counters;
}

core::MemoryLedger::Stats JobRunner::file_memory() const { return parts_->answers.files(); }

QueueRoom JobRunner::queue_room(const std::string& principal) const { return parts_->queue.room(principal); }

}  // namespace meshd::jobs
