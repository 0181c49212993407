// Serves a run from outside. The run suspends where it needs something (EffectRecorder::wants), and the job supplies
// it:
//   - the session's turn: ordered jobs before it are over before it takes from a queue or commits ordered effects early
//   - infeed entries: read from the queue, or waited for
//   - callback replies: the request is stored and visible, then its reply is waited for
//   - effects for outgoing queues: committed while the run continues, and visible only then
#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {
namespace {

// A cancelled run notifies when it is over; wait() needs a deadline all the same.
constexpr std::chrono::hours kUntilCancelled{1};

}  // namespace
// What serve() remembers of a run.
struct JobRunner::ServeNotes {
  std::map<std::string, int64_t> given;  // number of the last entry that the run was given, by queue
  int64_t asked = -1;                    // index of the last callback request
  int64_t number = 0;                    // and its number in the session
  std::vector<effects::WakeTable::Subscription> subscriptions;
};

device::RunOutcome JobRunner::serve(Job& job, const core::WaiterRef& waiter, RunEnd& end) {
  ServeNotes notes;
  device::Run& run = *job.run;
  effects::EffectRecorder& recorder = *job.recorder;
  bool has_turn = job.queue == nullptr;
  bool is_ending = false;  // cancelled from here: nothing is done for it any more
  const auto cancel = [&](const core::Error& reason) {
    is_ending = true;
    run.cancel(reason);
  };
  for (;; waiter->wait(is_ending ? clock_.steady() + kUntilCancelled : job.deadline)) {
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
      // Pure and unordered callbacks need no turn.
      const bool needs_turn = wants.commit || wants.feed || (wants.request && wants.request->ordered);
      // Asked each time: a job before it may have failed and halted the session.
      if (needs_turn && job.queue != nullptr) has_turn = job.queue->has_turn(job.row.number);
      if (needs_turn && !has_turn) {
        check_turn_comes(job);
        give_slot(job);
        continue;
      }
      if (needs_turn) take_slot(job);
      if (wants.commit && commit_effects(job, recorder)) run.resume();
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
  recorder.answer(request.call, asked.answer);
  return true;
}

bool JobRunner::commit_effects(Job& job, effects::EffectRecorder& recorder) {
  std::vector<storage::EffectRow> rows = recorder.rows(job.committed.size(), job.row.id);
  if (rows.empty()) return false;
  bool is_held = false;
  store_.catalog().write([&](storage::Transaction& transaction) {
    if (transaction.is_cancel_requested(job.row.id, job.row.principal)) throw was_cancelled();
    is_held = transaction.is_halted_before(job.request.session, job.row.number);
    if (!is_held) transaction.append_effects(job.request.session, rows);
  });
  if (is_held) return false;  // the end of the job that failed notifies this one
  for (const storage::EffectRow& row : rows) job.committed.emplace_back(row.sequence, row.number);
  log_.notify(job.request.session);
  return recorder.committed(job.committed.size());
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
        throw core::Error("queue_full", std::to_string(waiting_foreground_) +
                                            " requests wait for what their clients have to bring; send this one with "
                                            "\"Prefer: respond-async\"")
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
