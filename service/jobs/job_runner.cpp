#include "service/jobs/job_runner.h"

#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {
namespace {

using storage::JobState;

}  // namespace

JobRunner::JobRunner(storage::Store& store, arrays::ArrayStore& arrays, compile::Compiler& compiler,
                     device::Engine& engine, sessions::SessionStore& sessions, effects::EffectLog& log,
                     effects::FeedStore& feeds, effects::QuestionStore& questions, const core::Clock& clock,
                     RunnerOptions options)
    : store_(store),
      arrays_(arrays),
      compiler_(compiler),
      engine_(engine),
      sessions_(sessions),
      log_(log),
      feeds_(feeds),
      questions_(questions),
      clock_(clock),
      options_(options) {
  for (int i = 0; i < options_.background_threads; ++i) threads_.emplace_back([this] { work(); });
}

JobRunner::~JobRunner() {
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
  }
  stop_running(Stop::kAll);
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

JobResult JobRunner::run(JobRequest request, const ResultEncoder& encode, const core::WaiterRef& waiter) {
  {
    const std::lock_guard held(mutex_);
    if (stopping_) throw draining();
  }
  JobRef job = prepare(std::move(request));
  job->encode = encode;
  accept(*job, false);
  return finish(job, waiter);
}

JobResult JobRunner::finish(const JobRef& job, const core::WaiterRef& waiter) {
  {
    const std::lock_guard held(mutex_);
    live_.emplace(job->row.id, job);
    ++counters_.running;
  }
  try {
    JobResult result = execute(job, waiter);
    const std::lock_guard held(mutex_);
    --counters_.running;
    ++counters_.done;
    counters_.run_seconds += result.timings.run_ms / 1000;
    counters_.queue_seconds += result.timings.queue_ms / 1000;
    counters_.commit_seconds += result.timings.commit_ms / 1000;
    counters_.effects_appended += static_cast<int64_t>(result.effects.size());
    return result;
  } catch (const core::Error& error) {
    fail(*job, error);
    throw;
  } catch (const std::exception& error) {
    fail(*job, core::Error("internal", "the job failed on our side").with_internal(error.what()));
    throw;
  }
}

void JobRunner::enqueue(const JobRef& job) {
  job->in_background = true;
  {
    const std::lock_guard held(mutex_);
    live_.emplace(job->row.id, job);
    ++waiting_of_session_[job->row.session];
    ++counters_.waiting;
    // Jobs of one session start in the order of their numbers, whatever order their threads came here in.
    const auto behind = std::find_if(waiting_.begin(), waiting_.end(), [&](const JobRef& other) {
      return !job->row.session.empty() && other->row.session == job->row.session && other->row.number > job->row.number;
    });
    waiting_.insert(behind, job);
  }
  changed_.notify_all();
}

void JobRunner::work() {
  for (;;) {
    JobRef job;
    {
      std::unique_lock held(mutex_);
      changed_.wait(held, [&] {
        return stopping_ || (!waiting_.empty() && busy_ - waiting_background_ < options_.background_threads);
      });
      if (stopping_) return;
      ++busy_;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      if (--waiting_of_session_[job->row.session] == 0) waiting_of_session_.erase(job->row.session);
      --counters_.waiting;
    }
    job->row.state = JobState::kRunning;
    job->row.started = clock_.wall();
    store_.catalog().write_async([row = job->row](storage::Transaction& transaction) { transaction.update_job(row); },
                                 [](const std::exception_ptr&) {});
    try {
      finish(job, std::make_shared<core::ThreadWaiter>());
    } catch (const std::exception&) {
      // fail() has put it into the job's row
    }
    {
      const std::lock_guard held(mutex_);
      --busy_;
    }
    changed_.notify_all();
  }
}

void JobRunner::drain(std::chrono::milliseconds time) {
  {
    std::unique_lock held(mutex_);
    stopping_ = true;
    changed_.notify_all();
    held.unlock();
    watchers_.notify_all();
    stop_running(Stop::kWaiting);
    held.lock();
    changed_.wait_for(held, time, [&] { return counters_.running == 0; });
  }
  stop_running(Stop::kAll);
}

void JobRunner::stop_running(Stop which) {
  std::vector<JobRef> left;
  {
    const std::lock_guard held(mutex_);
    for (const auto& [id, job] : live_) left.push_back(job);
  }
  for (const JobRef& job : left) {
    if (which == Stop::kWaiting) {
      const std::lock_guard held(job->mutex);
      if (!job->waits) continue;
    }
    job->end(&Job::stopped, draining());
  }
}

bool JobRunner::is_stopping() const {
  const std::lock_guard held(mutex_);
  return stopping_;
}

JobCounters JobRunner::counters() const {
  const std::lock_guard held(mutex_);
  JobCounters counters = counters_;
  counters.queue_limit = options_.queue_limit;
  return counters;
}

}  // namespace meshd::jobs
