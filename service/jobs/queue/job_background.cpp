// Background jobs: they wait in a fair queue until they are ready, without a thread. A job is ready once earlier jobs
// of its session no longer update the arrays that it reads, and the session is not halted. Then it takes a slot, and a
// fiber executes it; where it waits again (for the jobs before it or for its client) it releases the slot.
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
    waiting_.push(job->row.principal, job->row.session, job->row.number, job);
    set_deadline_timer(job);
  }
  // It was accepted before its session was closed, and is in the queue only now.
  if (job->queue != nullptr && job->queue->is_dropped(job->row.number)) end_waiting(job, session_dropped());
  if (job->is_cancelled()) end_waiting(job, was_cancelled());
  start_ready();
}

void JobRunner::set_deadline_timer(const JobRef& job) {
  job->deadline_timer = background_.timers().at(job->deadline, [this, weak = std::weak_ptr(job)] {
    background_.start([this, weak](const core::WaiterRef&) {
      if (const JobRef late = weak.lock()) end_late(late);
    });
  });
}

void JobRunner::end_late(const JobRef& job) {
  if (!job->waits_without_limit()) {
    end_waiting(job, core::Error("deadline_exceeded", "the job's time was up before it started"));
    return;
  }
  const std::lock_guard held(mutex_);
  if (job->deadline_timer == 0) return;
  job->deadline = clock_.steady() + options_.longest;  // its time begins anew, as in end_of()
  set_deadline_timer(job);
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
    const bool is_ordered = job->effect_order >= sessions::EffectOrder::kOrdered;
    if (!is_first && (is_ordered || !job->uses.updates.empty() || !job->queue->may_log(job->row.number))) return false;
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
      background_.timers().cancel(std::exchange((*job)->deadline_timer, 0));
      count(**job, Counted::kRunning);
    }
    background_.start([this, job = *job](const core::WaiterRef& waiter) { run_in_background(job, waiter); });
  }
}

void JobRunner::run_in_background(const JobRef& job, const core::WaiterRef& waiter) {
  job->row.state = JobState::kRunning;
  job->row.started = clock_.wall();
  // Where it is not written (the disk is full, the end of the server has put the row back), the job ends from kQueued.
  store_.catalog().write_async(
      [row = job->row](storage::Transaction& transaction) { static_cast<void>(transaction.update_job(row)); },
      [](const std::exception_ptr&) {});
  try {
    finish(job, waiter);
  } catch (const std::exception&) {
    // fail() has written it to the job's row
  }
  {
    const std::lock_guard held(mutex_);
    count(*job, Counted::kNo);
  }
  changed_.notify_all();
  start_ready();
}

void JobRunner::count(Job& job, Counted how) {
  const auto difference = [&](Counted least) { return int{how >= least} - int{job.counted >= least}; };
  Share& share = shares_[job.row.principal];
  share.started += difference(Counted::kStarted);
  share.running += difference(Counted::kRunning);
  running_background_ += difference(Counted::kRunning);
  job.counted = how;
  if (share.started == 0) shares_.erase(job.row.principal);
}

bool JobRunner::end_waiting(const JobRef& job, const core::Error& reason) {
  {
    const std::lock_guard held(mutex_);
    if (!waiting_.remove(job->row.principal, job->row.session, job->row.number, job)) return false;
    places_.give_back(job->row.principal, job->row.session);
    background_.timers().cancel(std::exchange(job->deadline_timer, 0));
  }
  fail(*job, reason);
  return true;
}

void JobRunner::give_slot(Job& job) {
  const Counted how = job.is_held() ? Counted::kNo : Counted::kStarted;
  {
    const std::lock_guard held(mutex_);
    if (!job.in_background || job.counted == how) return;
    count(job, how);
  }
  start_ready();
}

void JobRunner::take_slot(Job& job) {
  const std::lock_guard held(mutex_);
  if (job.in_background) count(job, Counted::kRunning);
}

}  // namespace meshd::jobs
