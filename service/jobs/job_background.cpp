// Background jobs: they wait in a fair queue until they are ready, without a thread. A job is ready once earlier jobs
// of its session no longer update the arrays that it reads, and the session is not halted. Then it takes a slot, and a
// fiber executes it; where it waits again (for its turn or its client) it releases the slot.
#include <optional>
#include <utility>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {

using storage::JobState;

void JobRunner::enqueue(const JobRef& job) {
  job->in_background = true;
  {
    const std::lock_guard held(mutex_);
    live_.try_emplace({job->row.principal, job->row.id}, job);
    waiting_.push(job->row.principal, job->row.session, job->row.number, job);
    job->deadline_timer = background_.timers().at(job->deadline, [this, weak = std::weak_ptr(job)] {
      background_.start([this, weak](const core::WaiterRef&) {
        if (const JobRef late = weak.lock(); late != nullptr && !late->waits_without_limit())
          end_waiting(late, core::Error("deadline_exceeded", "the job's time was up before it started"));
      });
    });
  }
  // It was accepted before its session was closed, and is in the queue only now.
  if (job->queue != nullptr && job->queue->is_dropped(job->row.number)) end_waiting(job, session_dropped());
  start_ready();
}

void JobRunner::start_ready() {
  const auto may_start = [&](const std::string& principal) {
    const auto found = shares_.find(principal);
    const Share share = found == shares_.end() ? Share{} : found->second;
    return share.started < options_.started_limit &&
           (running_background_ < options_.background_jobs || share.running == 0);
  };
  // Out of its session's order a job starts only where it cannot have to wait for those that it passes.
  const auto is_ready = [](const JobRef& job, bool is_first) {
    if (job->queue == nullptr) return true;
    if (!is_first && (job->is_ordered || !job->uses.updates.empty())) return false;
    return job->queue->may_read(job->row.number);
  };
  for (;;) {
    std::optional<JobRef> job;
    {
      const std::lock_guard held(mutex_);
      if (stopping_) return;
      job = waiting_.take(may_start, is_ready);
      if (!job) return;
      places_.give_back((*job)->row.principal, (*job)->row.session);
      background_.timers().cancel((*job)->deadline_timer);
      count_started(**job);
    }
    background_.start([this, job = *job](const core::WaiterRef& waiter) { run_in_background(job, waiter); });
  }
}

void JobRunner::run_in_background(const JobRef& job, const core::WaiterRef& waiter) {
  job->row.state = JobState::kRunning;
  job->row.started = clock_.wall();
  store_.catalog().write_async([row = job->row](storage::Transaction& transaction) { transaction.update_job(row); },
                               [](const std::exception_ptr&) {});
  try {
    finish(job, waiter);
  } catch (const std::exception&) {
    // fail() has written it to the job's row
  }
  {
    const std::lock_guard held(mutex_);
    uncount(*job, Count::kStarted);
  }
  changed_.notify_all();
  start_ready();
}

void JobRunner::count_started(Job& job) {
  Share& share = shares_[job.row.principal];
  if (!std::exchange(job.is_started, true)) ++share.started;
  if (std::exchange(job.has_slot, true)) return;
  ++share.running;
  ++running_background_;
}

void JobRunner::uncount(Job& job, Count what) {
  Share& share = shares_[job.row.principal];
  if (std::exchange(job.has_slot, false)) {
    --share.running;
    --running_background_;
  }
  if (what == Count::kStarted && std::exchange(job.is_started, false)) --share.started;
  if (share.started == 0 && share.running == 0) shares_.erase(job.row.principal);
}

bool JobRunner::end_waiting(const JobRef& job, const core::Error& reason) {
  {
    const std::lock_guard held(mutex_);
    if (!waiting_.remove(job->row.principal, job->row.session, job->row.number, job)) return false;
    places_.give_back(job->row.principal, job->row.session);
    background_.timers().cancel(job->deadline_timer);
  }
  fail(*job, reason);
  return true;
}

void JobRunner::give_slot(Job& job) {
  const Count what = job.is_held() ? Count::kStarted : Count::kRunning;
  {
    const std::lock_guard held(mutex_);
    if (what == Count::kRunning && job.in_background && !job.is_started) {
      // It was held, and waits for its turn now.
      job.is_started = true;
      ++shares_[job.row.principal].started;
    }
    if (!job.has_slot && (what == Count::kRunning || !job.is_started)) return;
    uncount(job, what);
  }
  start_ready();
}

void JobRunner::take_slot(Job& job) {
  const std::lock_guard held(mutex_);
  if (job.in_background) count_started(job);
}

}  // namespace meshd::jobs
