// Waits of requests: for the end of a job, for the end of all jobs of a session. The awaited event notifies the waiter,
// and so does everything that ends the wait.
#include <fmt/core.h>

#include "service/core/error.h"
#include "service/jobs/parts.h"

namespace meshd::jobs {
namespace {

// The time between a job's commit and its last step, of which its watchers are notified.
constexpr std::chrono::seconds kLastStep{1};

}  // namespace

JobView JobRunner::wait(const std::string& id, std::string_view principal, std::chrono::milliseconds time,
                        const core::WaiterRef& waiter, core::MemoryReservation& memory) {
  core::SteadyTime end = clock_.steady() + time;
  const JobRef job = parts_->live.find(id, principal);
  // A job without a row has no id that a client knows.
  if (job != nullptr && job->has_row) {
    job->watchers.add(waiter);
    watchers_.add(waiter);
    // Its effects may have been seen already, so that it must not be shown as running: its last step is waited for.
    const auto has_committed = [&] {
      const auto state =
          store_.catalog().read([&](storage::Reader& reader) { return reader.job_state(id, principal); });
      return state && storage::is_over(*state);
    };
    while (!job->is_over()) {
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

void JobRunner::resume_session(const std::string& session, std::string_view principal,
                               std::optional<storage::IdempotencyRow> key) {
  sessions_.resume(session, principal, std::move(key));
  parts_->queue.start_ready();
}

void JobRunner::close_session(const std::string& session, std::string_view principal, std::chrono::milliseconds time,
                              const core::WaiterRef& waiter) {
  sessions_.close(session, principal);
  const auto queue = sessions_.queue(session);
  for (const JobRef& job : parts_->live.of_session(session)) {
    if (queue->is_dropped(job->row.number)) parts_->queue.end_waiting(job, session_dropped());
  }
  wait_idle(*queue, time, waiter);
  sessions_.remove(session);
  log_.notify(session);  // its streams end
}

}  // namespace meshd::jobs
