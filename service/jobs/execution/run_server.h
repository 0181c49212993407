// Serves a run from outside. The run suspends where it needs something (EffectRecorder::wants), and the job supplies
// it:
//   - the session's order: ordered jobs before it (for a streaming job, all with effects) are over before it takes from
//     a queue or commits effects early
//   - infeed entries: read from the queue, or waited for
//   - callback replies: the request is stored and visible, then its reply is waited for
//   - effects for outgoing queues, and all of a job that streams its effects: committed while the run continues, and
//     visible only then. What happens within kBatchTime of a commit is committed together.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "service/core/clock.h"
#include "service/core/waits/waiter.h"
#include "service/device/engine.h"
#include "service/effects/callback_store.h"
#include "service/effects/effect_log.h"
#include "service/effects/infeed_queues.h"
#include "service/jobs/job.h"
#include "service/jobs/job_statistics.h"
#include "service/jobs/queue/job_waits.h"
#include "storage/catalog.h"

namespace meshd::jobs {

/// The outcome of a run, written by the engine. Its lock is a leaf.
class RunEnd {
 public:
  void put(device::RunOutcome outcome) {
    const std::lock_guard held(mutex_);
    outcome_ = std::move(outcome);
  }
  /// Once; nothing before the run is over.
  std::optional<device::RunOutcome> take() {
    const std::lock_guard held(mutex_);
    return std::exchange(outcome_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<device::RunOutcome> outcome_;
};

/// Any thread; a run is served by who executes its job.
class RunServer {
 public:
  RunServer(storage::Catalog& catalog, effects::EffectLog& log, effects::InfeedQueues& infeeds,
            effects::CallbackStore& callbacks, JobWaits& waits, JobStatistics& statistics, const core::Clock& clock)
      : catalog_(catalog),
        log_(log),
        infeeds_(infeeds),
        callbacks_(callbacks),
        waits_(waits),
        statistics_(statistics),
        clock_(clock) {}

  /// Until the run is over, which ends it where the job is to end; the waiter is notified of `end`.
  device::RunOutcome serve(Job& job, const core::WaiterRef& waiter, RunEnd& end);
  /// A streaming job whose program failed leaves what it did before: it waits for the jobs before it, unless something
  /// else ends it. Throws what does where that is a stop of the server or a cancellation.
  void wait_to_leave_effects(Job& job, const core::Error& error, core::Waiter& waiter);

 private:
  struct Notes;
  /// Supplies what the run wants, as far as it is there. Throws what ends the job.
  void attend(Job& job, const core::WaiterRef& waiter, Notes& notes);
  /// False: a job before it is not over.
  bool take_order(Job& job, Notes& notes);
  void commit_due(Job& job, const effects::Wants& wants, Notes& notes);
  /// Supplies what the run waits for. False: it is not there yet, and the job waits.
  bool get_for(Job& job, effects::EffectRecorder& recorder, const effects::Wants& wants, Notes& notes);
  /// True when the run waited for it.
  bool commit_effects(Job& job, effects::EffectRecorder& recorder);

  storage::Catalog& catalog_;
  effects::EffectLog& log_;
  effects::InfeedQueues& infeeds_;
  effects::CallbackStore& callbacks_;
  JobWaits& waits_;
  JobStatistics& statistics_;
  const core::Clock& clock_;
};

}  // namespace meshd::jobs
