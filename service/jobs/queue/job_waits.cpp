// Waits of jobs, and of requests about jobs. Nothing polls: the awaited event notifies the waiter, and so does
// everything that ends the wait.
#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {
namespace {

// The time between a job's commit and its last step, of which its watchers are notified.
constexpr std::chrono::seconds kLastStep{1};

}  // namespace

core::Error session_halted(const std::string& session) {
  return {"session_halted", fmt::format("session '{}' is halted: a job has failed; resume it, or queue this job with "
                                        "\"Prefer: respond-async\"",
                                        session)};
}

std::optional<core::Error> JobRunner::end_of(Job& job, const core::Waiter& waiter) const {
  {
    const std::lock_guard held(job.mutex);
    if (job.cancelled) return was_cancelled();
    if (job.stopped || all_end_) return draining();
  }
  if (!job.has_row && waiter.is_abandoned()) return core::Error("cancelled", "the client went away");
  if (clock_.steady() < job.deadline) return std::nullopt;
  if (job.waits_without_limit()) {
    job.deadline = clock_.steady() + options_.longest;  // its time begins anew
    return std::nullopt;
  }
  return core::Error("deadline_exceeded", "the job's time was up");
}

void JobRunner::throw_if_never_next(const Job& job) {
  if (job.queue->is_behind_put_back(job.row.number)) throw draining();
  if (job.queue->is_dropped(job.row.number)) throw session_dropped();
  if (!job.in_background && job.is_held()) throw session_halted(job.row.session);
}

void JobRunner::wait_for_session(Job& job, core::Waiter& waiter, const std::function<bool()>& is_there) {
  while (!is_there()) {
    if (auto end = end_of(job, waiter)) throw std::move(*end);
    throw_if_never_next(job);
    give_slot(job);
    waiter.wait(job.deadline);
  }
  take_slot(job);
}

JobView JobRunner::wait(const std::string& id, std::string_view principal, std::chrono::milliseconds time,
                        const core::WaiterRef& waiter, core::MemoryReservation& memory) {
  core::SteadyTime end = clock_.steady() + time;
  const JobRef job = find_live(id, principal);
  // A job without a row has no id that a client knows.
  if (job != nullptr && job->has_row) {
    job->watchers.add(waiter);
    watchers_.add(waiter);
    const auto is_over = [&] {
      const std::lock_guard held(job->mutex);
      return job->over;
    };
    // Its effects may have been seen already, so that it must not be shown as running: its last step is waited for.
    const auto has_committed = [&] {
      const auto state =
          store_.catalog().read([&](storage::Reader& reader) { return reader.job_state(id, principal); });
      return state && storage::is_over(*state);
    };
    while (!is_over()) {
      if (waiter->is_abandoned() || is_stopping() || clock_.steady() >= end) {
        if (!has_committed()) break;
        end = clock_.steady() + kLastStep;
      }
      waiter->wait(end);
    }
  }
  return view(id, principal, memory);
}

void JobRunner::wait_idle(sessions::SessionQueue& queue, std::chrono::milliseconds time,
                          const core::WaiterRef& waiter) {
  const int64_t last = queue.last_open();
  if (last == 0) return;
  const core::SteadyTime end = clock_.steady() + time;
  queue.watch(waiter);
  watchers_.add(waiter);
  while (!queue.is_over(last)) {
    if (is_stopping()) throw draining();
    if (waiter->is_abandoned()) throw core::Error("cancelled", "the client went away");
    if (queue.is_held(last) && !queue.is_closing())
      throw core::Error("session_halted", "the session is halted: a job has failed; resume the session to wait on");
    if (clock_.steady() >= end) {
      throw core::Error(
          "overloaded",
          fmt::format("{} jobs of the session are not over after {} s; send the request again to wait longer",
                      queue.open_count(), std::chrono::duration_cast<std::chrono::seconds>(time).count()))
          .with_retry_after(1);
    }
    waiter->wait(end);
  }
}

void JobRunner::barrier(const std::string& session, std::chrono::milliseconds time, const core::WaiterRef& waiter) {
  wait_idle(*sessions_.queue(session), time, waiter);
}

void JobRunner::resume_session(const std::string& session, std::string_view principal) {
  sessions_.resume(session, principal);
  start_ready();
}

void JobRunner::close_session(const std::string& session, std::string_view principal, std::chrono::milliseconds time,
                              const core::WaiterRef& waiter) {
  sessions_.close(session, principal);
  const auto queue = sessions_.queue(session);
  std::vector<JobRef> dropped;
  {
    const std::lock_guard held(mutex_);
    for (const auto& [name, job] : live_) {
      if (job->queue == queue && queue->is_dropped(job->row.number)) dropped.push_back(job);
    }
  }
  for (const JobRef& job : dropped) end_waiting(job, session_dropped());
  wait_idle(*queue, time, waiter);
  sessions_.remove(session);
  log_.notify(session);  // its streams end
}

}  // namespace meshd::jobs
