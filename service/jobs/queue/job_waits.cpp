#include "service/jobs/queue/job_waits.h"

#include <fmt/core.h>

#include <utility>

namespace meshd::jobs {

std::optional<core::Error> JobWaits::end_of(Job& job, const core::Waiter& waiter) const {
  {
    const std::lock_guard held(job.mutex);
    if (job.cancelled) return was_cancelled();
    if (job.stopped || all_end_) return draining();
  }
  if (!job.has_row && waiter.is_abandoned()) return core::Error("cancelled", "the client went away");
  if (clock_.steady() < job.deadline) return std::nullopt;
  if (job.waits_without_limit()) {
    job.deadline = clock_.steady() + longest_;  // its time begins anew
    return std::nullopt;
  }
  return core::Error("deadline_exceeded", "the job's time was up");
}

void JobWaits::throw_if_ended(Job& job, const core::Waiter& waiter) const {
  if (auto end = end_of(job, waiter)) throw std::move(*end);
}

void JobWaits::throw_if_never_next(const Job& job) const {
  if (job.queue->is_behind_put_back(job.row.number)) throw draining();
  if (job.queue->is_dropped(job.row.number)) throw session_dropped();
  if (!job.is_held()) return;
  if (!job.in_background) throw session_halted(job.row.session);
  if (stopping_) throw draining();  // no client can resume its session any more
}

void JobWaits::wait_for_session(Job& job, core::Waiter& waiter, const std::function<bool()>& is_there) {
  while (!is_there()) {
    throw_if_ended(job, waiter);
    throw_if_never_next(job);
    queue_.give_slot(job);
    waiter.wait(job.deadline);
  }
  queue_.take_slot(job);
}

void JobWaits::wait_to_commit(Job& job, core::Waiter& waiter) {
  if (job.queue == nullptr) return;
  wait_for_session(job, waiter, [&] {
    return !job.queue->is_held(job.row.number) && (job.uses.updates.empty() || job.queue->may_update(job.row.number)) &&
           job.queue->may_log(job.row.number);
  });
}

void JobWaits::begin_client_wait(Job& job, ClientWait wait) {
  bool waits_already = false;
  {
    const std::lock_guard held(job.mutex);
    waits_already = job.waits.has_value();
    if (waits_already) job.waits = std::move(wait);
  }
  if (waits_already) return queue_.give_slot(job);  // woken for nothing: it took its slot to look
  {
    const std::lock_guard held(mutex_);
    if (stopping_) throw draining();
    if (!job.in_background) {
      if (foreground_ >= foreground_limit_) {
        throw core::Error(
            "queue_full",
            fmt::format(
                "{} requests wait for what their clients have to bring; send this one with \"Prefer: respond-async\"",
                foreground_))
            .with_retry_after(1);
      }
      ++foreground_;
    }
  }
  {
    const std::lock_guard held(job.mutex);
    job.waits = std::move(wait);
  }
  queue_.give_slot(job);
  const std::lock_guard held(mutex_);
  if (stopping_) throw draining();
}

void JobWaits::end_client_wait(Job& job) {
  {
    const std::lock_guard held(job.mutex);
    if (!job.waits) return;
    job.waits.reset();
  }
  queue_.take_slot(job);
  if (job.in_background) return;
  const std::lock_guard held(mutex_);
  --foreground_;
}

void JobWaits::stop() {
  const std::lock_guard held(mutex_);
  stopping_ = true;
}

}  // namespace meshd::jobs
