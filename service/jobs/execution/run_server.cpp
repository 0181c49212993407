#include "service/jobs/execution/run_server.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "service/core/error_of.h"
#include "service/core/keep_trying.h"

namespace meshd::jobs {
namespace {

// A cancelled run notifies when it is over; wait() needs a deadline all the same.
constexpr std::chrono::hours kUntilCancelled{1};
// Between two commits of a streaming job, unless the run waits for one: an effect is visible this much and a commit
// after it happened, and a program that logs all the time costs the disk so many syncs.
constexpr std::chrono::milliseconds kBatchTime{10};

core::Error error_of(const std::exception_ptr& exception) {
  return core::error_of(exception, "the server has no memory for what the run waits for",
                        "what the run waits for failed");
}

}  // namespace

// What serve() remembers of a run.
struct RunServer::Notes {
  std::map<std::string, int64_t> given;       // number of the last entry that the run was given, by queue
  int64_t asked = -1;                         // index of the last callback request
  int64_t number = 0;                         // and its number in the session
  core::SteadyTime next_batch;                // not before
  std::optional<core::SteadyTime> batch_due;  // effects wait for that time
  bool waited_in_order = false;               // since the last commit of effects
  std::vector<effects::WakeTable::Subscription> subscriptions;
};

device::RunOutcome RunServer::serve(Job& job, const core::WaiterRef& waiter, RunEnd& end) {
  Notes notes;
  bool is_ending = false;  // cancelled from here: nothing is done for it any more
  const auto cancel = [&](const core::Error& reason) {
    is_ending = true;
    core::keep_trying([&] { job.run->cancel(reason); });
  };
  const auto wake_time = [&] {
    if (is_ending) return clock_.steady() + kUntilCancelled;
    return notes.batch_due ? std::min(*notes.batch_due, job.deadline) : job.deadline;
  };
  for (;; waiter->wait(wake_time())) {
    notes.batch_due.reset();
    if (auto outcome = end.take()) {
      waits_.end_client_wait(job);
      return std::move(*outcome);
    }
    if (is_ending) continue;
    // Whatever is thrown, the job must not end before its run, which refers to it.
    try {
      if (const auto reason = waits_.end_of(job, *waiter)) {
        cancel(*reason);
      } else {
        attend(job, waiter, notes);
      }
    } catch (...) {
      cancel(core::keep_trying([] { return error_of(std::current_exception()); }));
    }
  }
}

void RunServer::attend(Job& job, const core::WaiterRef& waiter, Notes& notes) {
  effects::EffectRecorder& recorder = *job.recorder;
  const effects::Wants wants = recorder.wants();
  if (!wants.any()) return;
  // Pure and unordered callbacks need not be next.
  const bool needs_order = wants.commit || wants.feed || (wants.request && wants.request->ordered);
  if (needs_order && !take_order(job, notes)) return;
  if (wants.commit) commit_due(job, wants, notes);
  if (job.streams() && recorder.wants().commit) notes.batch_due = notes.next_batch;
  if (!wants.feed && !wants.request) return;
  if (notes.subscriptions.empty()) {
    const auto notify = [weak = std::weak_ptr(waiter)] {
      if (const auto there = weak.lock()) there->notify();
    };
    notes.subscriptions = {infeeds_.subscribe(job.request.session, notify),
                           callbacks_.subscribe(job.request.session, notify)};
  }
  if (get_for(job, recorder, wants, notes)) {
    waits_.end_client_wait(job);
    job.run->resume();
  } else if (job.queue->is_closing()) {
    throw core::Error("session_closed", "the session was closed while the job waited for its client");
  }
}

bool RunServer::take_order(Job& job, Notes& notes) {
  // Asked each time: a job before it may have failed and halted the session.
  if (job.queue != nullptr && !job.queue->is_next_in_order(job.row.number)) {
    waits_.throw_if_never_next(job);
    waits_.give_slot(job);
    notes.waited_in_order = true;
    return false;
  }
  waits_.take_slot(job);
  return true;
}

void RunServer::commit_due(Job& job, const effects::Wants& wants, Notes& notes) {
  const bool is_due =
      !job.streams() || wants.room || wants.feed || wants.request || clock_.steady() >= notes.next_batch;
  if (!is_due) return;
  effects::EffectRecorder& recorder = *job.recorder;
  const auto oldest = recorder.oldest_open();
  const bool waited = commit_effects(job, recorder);
  const core::SteadyTime now = clock_.steady();
  notes.next_batch = now + kBatchTime;
  if (job.streams() && oldest && !std::exchange(notes.waited_in_order, false))
    statistics_.note_streamed(std::chrono::duration<double>(now - *oldest).count());
  if (waited) job.run->resume();
}

bool RunServer::get_for(Job& job, effects::EffectRecorder& recorder, const effects::Wants& wants, Notes& notes) {
  const std::string& session = job.request.session;
  if (wants.feed) {
    std::vector<effects::InfeedEntry> more = infeeds_.after(session, wants.queue, notes.given[wants.queue]);
    if (more.empty()) {
      waits_.begin_client_wait(job, {wants.queue, 0});
      return false;
    }
    notes.given[wants.queue] = more.back().number;
    recorder.feed(wants.queue, std::move(more));
    return true;
  }
  const effects::CallbackRequest& request = *wants.request;
  const bool is_new = notes.asked != request.call;
  const effects::SessionCallback asked =
      is_new ? callbacks_.ask(session, job.row.id, request) : callbacks_.get(session, notes.number);
  notes.asked = request.call;
  notes.number = asked.number;
  if (asked.state != effects::CallbackState::kAnswered) {
    waits_.begin_client_wait(job, {"", asked.number});
    return false;
  }
  recorder.reply(request.call, asked.reply);
  return true;
}

bool RunServer::commit_effects(Job& job, effects::EffectRecorder& recorder) {
  std::vector<storage::EffectRow> rows = recorder.open_rows(job.row.id);
  if (rows.empty()) return false;
  bool is_held = false;
  catalog_.write([&](storage::Transaction& transaction) {
    if (transaction.is_cancel_requested(job.row.id, job.row.principal)) throw was_cancelled();
    is_held = transaction.is_halted_before(job.request.session, job.row.number);
    if (!is_held) transaction.append_effects(job.request.session, rows);
  });
  if (is_held) return false;  // the end of the job that failed notifies this one
  job.note_committed(rows);
  log_.notify(job.request.session);
  return recorder.committed(rows.size());
}

void RunServer::wait_to_leave_effects(Job& job, const core::Error& error, core::Waiter& waiter) {
  if (is_from_outside(error) || !job.recorder->oldest_open()) return;
  try {
    waits_.wait_to_commit(job, waiter);
  } catch (const core::Error& other) {
    if (is_from_outside(other)) throw;
    // Its time is up, or its session is closed: it ends with the error of its program, and leaves nothing.
  }
}

}  // namespace meshd::jobs
