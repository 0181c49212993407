// What the thread of a job does while its run goes on. The run itself never waits on a thread: where it needs something
// from outside it stops and says so, and this thread gets it:
//  - its session's turn: before the job takes from a queue or shows something, ordered jobs before it are over
//  - entries that clients fed: read from the queue, or waited for
//  - effects for outgoing queues: committed while the run goes on, and only then shown
#include <algorithm>

#include "service/core/error.h"
#include "service/jobs/job.h"

namespace meshd::jobs {
namespace {

// How often a waiting job looks whether its client and its session are still there.
constexpr std::chrono::milliseconds kLook{200};

}  // namespace

device::RunOutcome JobRunner::serve(Job& job, Desk& desk, device::Run& run, effects::Recorder& recorder,
                                    const std::function<bool()>& gone) {
  const std::string& session = job.request.session;
  effects::WakeTable::Subscription subscription;
  std::map<std::string, int64_t> given;  // number of the last entry, by queue
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
      if (!has_turn) has_turn = job.line->wait_turn_for(job.row.number, kLook);
      if (!has_turn) {
        desk.ring();
        continue;
      }
      if (wants.commit) {
        if (commit_effects(job, recorder)) run.resume();
      }
      if (!wants.feed) continue;
      if (subscription == nullptr) {
        subscription = feeds_.subscribe(session, [weak = desk.weak_from_this()] {
          if (const auto there = weak.lock()) there->ring();
        });
      }
      std::vector<effects::Feed> more = feeds_.after(session, wants.queue, given[wants.queue]);
      if (more.empty()) {
        if (job.line->is_closing()) throw core::Error("session_closed", "the session was closed while the job waited");
        begin_wait(job, {wants.queue});
        continue;
      }
      given[wants.queue] = more.back().number;
      recorder.feed(wants.queue, std::move(more));
      end_wait(job);
      run.resume();
    } catch (const core::Error& error) {
      end(error);
    }
  }
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
