// Serves a run from outside. The run suspends where it needs something (EffectRecorder::wants), and the job supplies
// it:
//   - the session's order: ordered jobs before it (for a streaming job, all with effects) are over before it takes from
//     a queue or commits effects early
//   - infeed entries: read from the queue, or waited for
//   - callback replies: the request is stored and visible, then its reply is waited for
//   - effects for outgoing queues, and all of a job that streams its effects: committed while the run continues, and
//     visible only then. What happens within kBatchTime of a commit is committed together.
#include <fmt/core.h>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {
namespace {

// A cancelled run notifies when it is over; wait() needs a deadline all the same.
constexpr std::chrono::hours kUntilCancelled{1};
// Between two commits of a streaming job, unless the run waits for one: an effect is visible this much and a commit
// after it happened, and a program that logs all the time costs the disk so many syncs.
constexpr std::chrono::milliseconds kBatchTime{10};

}  // namespace
// What serve() remembers of a run.
struct JobRunner::ServeNotes {
  std::map<std::string, int64_t> given;  // number of the last entry that the run was given, by queue
  int64_t asked = -1;                    // index of the last callback request
  int64_t number = 0;                    // and its number in the session
  core::SteadyTime next_batch;           // not before
  bool waited_in_order = false;          // since the last commit of effects
  std::vector<effects::WakeTable::Subscription> subscriptions;
};

device::RunOutcome JobRunner::serve(Job& job, const core::WaiterRef& waiter, RunEnd& end) {
  ServeNotes notes;
  device::Run& run = *job.run;
  effects::EffectRecorder& recorder = *job.recorder;
  bool is_next = job.queue == nullptr;
  bool is_ending = false;  // cancelled from here: nothing is done for it any more
  const auto cancel = [&](const core::Error& reason) {
    is_ending = true;
    run.cancel(reason);
  };
  std::optional<core::SteadyTime> batch_due;
  const auto wake_time = [&] {
    if (is_ending) return clock_.steady() + kUntilCancelled;
    return batch_due ? std::min(*batch_due, job.deadline) : job.deadline;
  };
  for (;; waiter->wait(wake_time())) {
    batch_due.reset();
    {
      const std::lock_guard held(end.mutex);
      if (end.outcome) {
        end_wait(job);
        return std::move(*end.outcome);
      }
    }
    if (is_ending) continue;
    if (const auto reason = end_of(job, *waiter)) {
      cancel(*reason);
      continue;
    }
    const effects::Wants wants = recorder.wants();
    if (!wants.any()) continue;
    try {
      // Pure and unordered callbacks need not be next.
      const bool needs_order = wants.commit || wants.feed || (wants.request && wants.request->ordered);
      // Asked each time: a job before it may have failed and halted the session.
      if (needs_order && job.queue != nullptr) is_next = job.queue->is_next_in_order(job.row.number);
      if (needs_order && !is_next) {
        throw_if_never_next(job);
        give_slot(job);
        notes.waited_in_order = true;
        continue;
      }
      if (needs_order) take_slot(job);
      const bool is_due =
          !job.streams() || wants.room || wants.feed || wants.request || clock_.steady() >= notes.next_batch;
      if (wants.commit && is_due) {
        const auto oldest = recorder.oldest_open();
        const bool waited = commit_effects(job, recorder);
        const core::SteadyTime now = clock_.steady();
        notes.next_batch = now + kBatchTime;
        if (job.streams() && oldest && !std::exchange(notes.waited_in_order, false)) {
          const std::lock_guard held(mutex_);
          counters_.streamed_seconds.add(std::chrono::duration<double>(now - *oldest).count());
        }
        if (waited) run.resume();
      }
      if (job.streams() && recorder.wants().commit) batch_due = notes.next_batch;
      if (!wants.feed && !wants.request) continue;
      if (notes.subscriptions.empty()) {
        const auto notify = [weak = std::weak_ptr(waiter)] {
          if (const auto there = weak.lock()) there->notify();
        };
        notes.subscriptions = {infeeds_.subscribe(job.request.session, notify),
                               callbacks_.subscribe(job.request.session, notify)};
      }
      if (get_for(job, recorder, wants, notes)) {
        end_wait(job);
        run.resume();
      } else if (job.queue->is_closing()) {
        throw core::Error("session_closed", "the session was closed while the job waited for its client");
      }
    } catch (const core::Error& error) {
      cancel(error);
    }
  }
}

bool JobRunner::get_for(Job& job, effects::EffectRecorder& recorder, const effects::Wants& wants, ServeNotes& notes) {
  const std::string& session = job.request.session;
  if (wants.feed) {
    std::vector<effects::InfeedEntry> more = infeeds_.after(session, wants.queue, notes.given[wants.queue]);
    if (more.empty()) {
      begin_wait(job, {wants.queue, 0});
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
    begin_wait(job, {"", asked.number});
    return false;
  }
  recorder.reply(request.call, asked.reply);
  return true;
}

bool JobRunner::commit_effects(Job& job, effects::EffectRecorder& recorder) {
  std::vector<storage::EffectRow> rows = recorder.open_rows(job.row.id);
  if (rows.empty()) return false;
  bool is_held = false;
  store_.catalog().write([&](storage::Transaction& transaction) {
    if (transaction.is_cancel_requested(job.row.id, job.row.principal)) throw was_cancelled();
    is_held = transaction.is_halted_before(job.request.session, job.row.number);
    if (!is_held) transaction.append_effects(job.request.session, rows);
  });
  if (is_held) return false;  // the end of the job that failed notifies this one
  job.note_committed(rows);
  log_.notify(job.request.session);
  return recorder.committed(rows.size());
}

void JobRunner::wait_to_leave_effects(Job& job, const core::Error& error, core::Waiter& waiter) {
  if (is_from_outside(error) || !job.recorder->oldest_open()) return;
  try {
    wait_to_commit(job, waiter);
  } catch (const core::Error& other) {
    if (is_from_outside(other)) throw;
    // Its time is up, or its session is closed: it ends with the error of its program, and leaves nothing.
  }
}

void JobRunner::begin_wait(Job& job, ClientWait wait) {
  bool waits_already = false;
  {
    const std::lock_guard held(job.mutex);
    waits_already = job.waits.has_value();
    if (waits_already) job.waits = std::move(wait);
  }
  if (waits_already) return give_slot(job);  // woken for nothing: it took its slot to look
  {
    const std::lock_guard held(mutex_);
    if (stopping_) throw draining();
    if (!job.in_background) {
      if (waiting_foreground_ >= options_.foreground_waits) {
        throw core::Error(
            "queue_full",
            fmt::format(
                "{} requests wait for what their clients have to bring; send this one with \"Prefer: respond-async\"",
                waiting_foreground_))
            .with_retry_after(1);
      }
      ++waiting_foreground_;
    }
  }
  {
    const std::lock_guard held(job.mutex);
    job.waits = std::move(wait);
  }
  give_slot(job);
  const std::lock_guard held(mutex_);
  if (stopping_) throw draining();
}

void JobRunner::end_wait(Job& job) {
  {
    const std::lock_guard held(job.mutex);
    if (!job.waits) return;
    job.waits.reset();
  }
  take_slot(job);
  if (job.in_background) return;
  const std::lock_guard held(mutex_);
  --waiting_foreground_;
}

}  // namespace meshd::jobs
