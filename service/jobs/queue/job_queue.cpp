#include "service/jobs/queue/job_queue.h"

#include <utility>

#include "service/core/error.h"

namespace meshd::jobs {

JobQueue::JobQueue(const RunnerOptions& options, const core::Clock& clock, Calls calls)
    : background_jobs_(options.background_jobs),
      started_limit_(options.started_limit),
      longest_(options.longest),
      clock_(clock),
      calls_(std::move(calls)),
      places_(options.queue),
      fibers_(options.background_threads, clock) {}

void JobQueue::take_place(const std::string& principal, const std::string& session) {
  const std::lock_guard held(mutex_);
  if (stopping_) throw draining();
  places_.take(principal, session);
}

void JobQueue::add_place(const std::string& principal, const std::string& session) {
  const std::lock_guard held(mutex_);
  places_.add(principal, session);
}

void JobQueue::give_back_place(const std::string& principal, const std::string& session) {
  const std::lock_guard held(mutex_);
  places_.give_back(principal, session);
}

void JobQueue::enqueue(const JobRef& job) {
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

void JobQueue::set_deadline_timer(const JobRef& job) {
  job->entry.deadline_timer = fibers_.timers().at(job->deadline, [this, weak = std::weak_ptr(job)] {
    fibers_.start([this, weak](const core::WaiterRef&) {
      if (const JobRef late = weak.lock()) end_late(late);
    });
  });
}

void JobQueue::end_late(const JobRef& job) {
  if (!job->waits_without_limit()) {
    end_waiting(job, core::Error("deadline_exceeded", "the job's time was up before it started"));
    return;
  }
  const std::lock_guard held(mutex_);
  if (job->entry.deadline_timer == 0) return;
  job->deadline = clock_.steady() + longest_;  // its time begins anew, as in JobWaits::end_of()
  set_deadline_timer(job);
}

bool JobQueue::may_start(const std::string& principal) const {
  const auto found = shares_.find(principal);
  const Share share = found == shares_.end() ? Share{} : found->second;
  return share.started < started_limit_ && (running_ < background_jobs_ || share.running == 0);
}

bool JobQueue::is_ready(const Job& job, bool is_first) {
  if (job.queue == nullptr) return true;
  const bool is_ordered = job.effect_order >= sessions::EffectOrder::kOrdered;
  if (!is_first && (is_ordered || !job.uses.updates.empty() || !job.queue->may_log(job.row.number))) return false;
  return job.queue->may_read(job.row.number);
}

JobRef JobQueue::take_ready() {
  const std::lock_guard held(mutex_);
  if (stopping_) return nullptr;
  auto job = waiting_.take([&](const std::string& principal) { return may_start(principal); },
                           [](const JobRef& one, bool is_first) { return is_ready(*one, is_first); });
  if (!job) return nullptr;
  places_.give_back((*job)->row.principal, (*job)->row.session);
  fibers_.timers().cancel(std::exchange((*job)->entry.deadline_timer, 0));
  count(**job, Counted::kRunning);
  return *job;
}

void JobQueue::start_ready() {
  while (const JobRef job = take_ready()) {
    fibers_.start([this, job](const core::WaiterRef& waiter) {
      calls_.run(job, waiter);
      {
        const std::lock_guard held(mutex_);
        count(*job, Counted::kNo);
      }
      start_ready();
    });
  }
}

void JobQueue::count(Job& job, Counted how) {
  const auto difference = [&](Counted least) { return int{how >= least} - int{job.entry.counted >= least}; };
  Share& share = shares_[job.row.principal];
  share.started += difference(Counted::kStarted);
  share.running += difference(Counted::kRunning);
  running_ += difference(Counted::kRunning);
  job.entry.counted = how;
  if (share.started == 0) shares_.erase(job.row.principal);
}

bool JobQueue::end_waiting(const JobRef& job, const core::Error& reason) {
  {
    const std::lock_guard held(mutex_);
    if (!waiting_.remove(job->row.principal, job->row.session, job->row.number, job)) return false;
    places_.give_back(job->row.principal, job->row.session);
    fibers_.timers().cancel(std::exchange(job->entry.deadline_timer, 0));
  }
  calls_.fail(*job, reason);
  return true;
}

void JobQueue::give_slot(Job& job) {
  const Counted how = job.is_held() ? Counted::kNo : Counted::kStarted;
  {
    const std::lock_guard held(mutex_);
    if (!job.in_background || job.entry.counted == how) return;
    count(job, how);
  }
  start_ready();
}

void JobQueue::take_slot(Job& job) {
  const std::lock_guard held(mutex_);
  if (job.in_background) count(job, Counted::kRunning);
}

void JobQueue::stop() {
  const std::lock_guard held(mutex_);
  stopping_ = true;
}

int64_t JobQueue::waiting() const {
  const std::lock_guard held(mutex_);
  return waiting_.size();
}

QueueRoom JobQueue::room(const std::string& principal) const {
  const std::lock_guard held(mutex_);
  return {places_.left(principal), places_.limits().principal, places_.of_principal(principal)};
}

}  // namespace meshd::jobs
