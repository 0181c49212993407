// What the thread of a job does while its run goes on. The run itself never waits on a thread: where it needs something
// from outside it stops and says so, and this thread gets it:
//  - its session's turn: before the job takes from a queue or shows something, ordered jobs before it are over
//  - entries that clients fed: read from the queue, or waited for
//  - answers to what the program asks: the question is stored and shown, its answer waited for
//  - effects for outgoing queues: committed while the run goes on, and only then shown
#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {
namespace {

// How often a waiting job looks whether its client and its session are still there.
constexpr std::chrono::milliseconds kLook{200};

}  // namespace

// What serve() remembers of a run.
struct JobRunner::ServeNotes {
  std::map<std::string, int64_t> given;  // number of the last entry that the run was given, by queue
  int64_t asked = -1;                    // the call that was asked last
  int64_t number = 0;                    // and its number in the session
  std::vector<effects::WakeTable::Subscription> bells;
};

device::RunOutcome JobRunner::serve(Job& job, Desk& desk, device::Run& run, effects::Recorder& recorder,
                                    const std::function<bool()>& gone) {
  ServeNotes notes;
  bool has_turn = job.line == nullptr;
  bool is_ending = false;  // cancelled from here: nothing is done for it any more
  const auto end = [&](const core::Error& error) {
    is_ending = true;
    run.cancel(error);
  };
  for (;;) {
    {
      std::unique_lock held(desk.mutex);
      desk.there.wait_for(held, kLook, [&] { return desk.outcome.has_value() || desk.rung; });
      desk.rung = false;
      if (desk.outcome) {
        held.unlock();
        end_wait(job);
        return std::move(*desk.outcome);
      }
    }
    if (is_ending) continue;
    if (!job.has_row && gone != nullptr && gone()) {
      end(core::Error("cancelled", "the client went away"));
      continue;
    }
    const effects::Wants wants = recorder.wants();
    if (!wants.any()) continue;
    try {
      // Pure and unordered callbacks ask when they like.
      const bool needs_turn = wants.commit || wants.feed || (wants.question && wants.question->ordered);
      if (needs_turn && !has_turn) has_turn = job.line->wait_turn_for(job.row.number, kLook);
      if (needs_turn && !has_turn) {
        desk.ring();
        continue;
      }
      if (wants.commit && commit_effects(job, recorder)) run.resume();
      if (!wants.feed && !wants.question) continue;
      if (notes.bells.empty()) {
        const auto ring = [weak = desk.weak_from_this()] {
          if (const auto there = weak.lock()) there->ring();
        };
        notes.bells = {feeds_.subscribe(job.request.session, ring), questions_.subscribe(job.request.session, ring)};
      }
      if (get_for(job, recorder, wants, notes)) {
        end_wait(job);
        run.resume();
      } else if (job.line->is_closing()) {
        throw core::Error("session_closed", "the session was closed while the job waited for its client");
      }
    } catch (const core::Error& error) {
      end(error);
    }
  }
}

bool JobRunner::get_for(Job& job, effects::Recorder& recorder, const effects::Wants& wants, ServeNotes& notes) {
  const std::string& session = job.request.session;
  if (wants.feed) {
    std::vector<effects::Feed> more = feeds_.after(session, wants.queue, notes.given[wants.queue]);
    if (more.empty()) {
      begin_wait(job, {wants.queue, 0});
      return false;
    }
    notes.given[wants.queue] = more.back().number;
    recorder.feed(wants.queue, std::move(more));
    return true;
  }
  const effects::Question& question = *wants.question;
  const bool is_new = notes.asked != question.call;
  const effects::AskedQuestion asked =
      is_new ? questions_.ask(session, job.row.id, question) : questions_.get(session, notes.number);
  notes.asked = question.call;
  notes.number = asked.number;
  if (asked.state != effects::QuestionState::kAnswered) {
    begin_wait(job, {"", asked.number});
    return false;
  }
  recorder.answer(question.call, asked.answer);
  return true;
}

bool JobRunner::commit_effects(Job& job, effects::Recorder& recorder) {
  std::vector<storage::EffectRow> rows = recorder.rows(job.committed.size(), job.row.id);
  if (rows.empty()) return false;
  store_.catalog().write(
      [&](storage::Transaction& transaction) { transaction.append_effects(job.request.session, rows); });
  for (const storage::EffectRow& row : rows) job.committed.emplace_back(row.sequence, row.number);
  log_.notify(job.request.session);
  return recorder.committed(job.committed.size());
}

void JobRunner::begin_wait(Job& job, ClientWait wait) {
  {
    const std::lock_guard held(job.mutex);
    if (job.waits) {
      job.waits = std::move(wait);
      return;
    }
  }
  {
    const std::lock_guard held(mutex_);
    if (stopping_) throw core::Error("draining", "the server is shutting down");
    if (!job.in_background) {
      if (waiting_foreground_ >= options_.foreground_waits) {
        throw core::Error("queue_full", std::to_string(waiting_foreground_) +
                                            " requests wait for what their clients have to bring; send this one with "
                                            "\"Prefer: respond-async\"")
            .with_retry_after(1);
      }
      ++waiting_foreground_;
    } else {
      ++waiting_background_;
      const int count = static_cast<int>(threads_.size());
      if (busy_ == count && count < options_.background_threads_most) threads_.emplace_back([this] { work(); });
    }
  }
  {
    const std::lock_guard held(job.mutex);
    job.waits = std::move(wait);
  }
  changed_.notify_all();
  const std::lock_guard held(mutex_);
  if (stopping_) throw core::Error("draining", "the server is shutting down");
}

void JobRunner::end_wait(Job& job) {
  {
    const std::lock_guard held(job.mutex);
    if (!job.waits) return;
    job.waits.reset();
  }
  const std::lock_guard held(mutex_);
  --(job.in_background ? waiting_background_ : waiting_foreground_);
}

}  // namespace meshd::jobs
