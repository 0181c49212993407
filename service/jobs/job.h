// The state of one live job. Private to service/jobs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service/core/error.h"
#include "service/core/waits/timers.h"
#include "service/core/waits/waiter_list.h"
#include "service/jobs/admission/device_assignment.h"
#include "service/jobs/job_request.h"
#include "service/jobs/job_view.h"
#include "service/jobs/live_jobs.h"
#include "service/quotas/array_ledger.h"
#include "service/sessions/session_queue.h"
#include "storage/rows/rows.h"

namespace meshd::jobs {

/// What ends requests and runs of a server that shuts down.
inline core::Error draining() { return core::Error("draining", "the server is shutting down").with_retry_after(2); }

/// What ends a job that its client has deleted before it was over.
inline core::Error was_cancelled() { return {"cancelled", "the job was cancelled"}; }

/// It was cancelled or the server stops: what the job did since its last commit counts for nothing.
inline bool is_from_outside(const core::Error& error) {
  return error.code() == core::ErrorCode("cancelled") || error.code() == core::ErrorCode("draining");
}

/// What ends a job that a halted session held when it was closed.
inline core::Error session_dropped() {
  return {"session_closed", "the session was halted before the job, and then closed"};
}

/// What ends a synchronous job of a session whose job before it has failed.
inline core::Error session_halted(const std::string& session) {
  return {"session_halted", "session '" + session +
                                "' is halted: a job has failed; resume it, or queue this job with "
                                "\"Prefer: respond-async\""};
}

/// What the queue of background jobs knows of one. Under the queue's lock.
struct QueueEntry {
  /// How it counts against the limits: not at all while it waits to start or is held, as started while it waits for the
  /// jobs before it or for its client, as running with a slot.
  enum class Counted : uint8_t { kNo, kStarted, kRunning } counted = Counted::kNo;
  core::Timers::Id deadline_timer = 0;  ///< while it waits to be started, else 0
};

/// From accepted to over. Its parts belong to whoever executes it, but for those under a lock.
struct Job {
  JobRequest request;
  DeviceAssignment assignment;
  device::ApartShards apart;  // of a run on devices of several processes
  compile::LoweredRef lowered;
  effects::Bindings bindings;
  storage::JobRow row;  ///< row.id is always set; written only when has_row
  bool has_row = false;
  sessions::EffectOrder effect_order = sessions::EffectOrder::kNone;
  std::optional<core::Error> cannot_run;          ///< found at a restart: nothing else is known of it but its row
  std::shared_ptr<sessions::SessionQueue> queue;  ///< null: no session
  std::vector<arrays::ArrayRef> donated;
  std::vector<arrays::ArrayRef> promised;  ///< by result, null where it is an update; empty: made when it commits
  /// arguments that keep their data until this job has committed; jobs with a row
  std::vector<arrays::ArrayRef> to_read;
  sessions::ArrayUses uses;
  std::map<size_t, int64_t> read_versions;                               ///< of arrays that are updated, by argument
  std::vector<int64_t> overwritten;                                      ///< arguments whose memory the run wrote
  std::vector<std::pair<arrays::ArrayRef, arrays::ShardBuffers>> taken;  ///< donated arrays' shards while it runs
  quotas::ArrayCharge charge;                                            ///< of what the request keeps on the disk
  core::MemoryReservation waiting;                                       ///< while it waits: queue/waiting_memory.h
  std::shared_ptr<core::MemoryReservation> text_memory;  ///< for its row, of results that its client gets as a file
  bool leaves_memory = false;  ///< there was no room for its request: in the row alone until it starts
  std::vector<tensor::TensorType> argument_types;  ///< that it is lowered for
  ResultEncoder encode;                            ///< makes the document that the row keeps
  JobTimings timings;
  core::SteadyTime accepted;
  core::SteadyTime deadline;
  bool in_background = false;
  QueueEntry entry;                                    ///< JobQueue's alone
  std::vector<std::pair<int64_t, int64_t>> committed;  ///< sequence and number of effects that are committed already
  StreamedEffects streamed;                            ///< the same where the job streams its effects

  core::WaiterList watchers;  ///< notified at its end

  std::mutex mutex;        ///< for what follows
  core::WaiterRef waiter;  ///< its waiter while it is executed: notified when the awaited state changes
  std::shared_ptr<device::Run> run;
  std::shared_ptr<effects::EffectRecorder> recorder;
  bool cancelled = false;
  bool stopped = false;  ///< the server is going down: its row stays as it is
  bool over = false;
  std::optional<ClientWait> waits;  ///< for an infeed entry or a reply of its client

  /// Shards of this argument may be left to the processes that need them.
  [[nodiscard]] bool is_apart(size_t argument) const {
    return !apart.arguments.empty() && apart.arguments[argument] != 0;
  }
  [[nodiscard]] bool streams() const { return effect_order == sessions::EffectOrder::kStreaming; }
  [[nodiscard]] int64_t committed_count() const {
    return streams() ? streamed.count : static_cast<int64_t>(committed.size());
  }
  /// These rows of its effects, the next ones, are in the log.
  void note_committed(const std::vector<storage::EffectRow>& rows) {
    if (streams()) return streamed.add(rows);
    for (const storage::EffectRow& one : rows) committed.emplace_back(one.sequence, one.number);
  }
  /// A job before it has failed and halted their session.
  [[nodiscard]] bool is_held() const { return queue != nullptr && queue->is_held(row.number); }
  /// It was given no time, and waits for its session to be resumed however long that takes.
  [[nodiscard]] bool waits_without_limit() const { return !request.deadline && is_held(); }

  /// Takes `mutex`, as do the following.
  [[nodiscard]] bool is_cancelled() {
    const std::lock_guard held(mutex);
    return cancelled;
  }
  [[nodiscard]] bool waits_for_client() {
    const std::lock_guard held(mutex);
    return waits.has_value();
  }
  [[nodiscard]] bool is_stopped() {
    const std::lock_guard held(mutex);
    return stopped;
  }
  [[nodiscard]] bool is_over() {
    const std::lock_guard held(mutex);
    return over;
  }
  /// Marks it and ends its wait.
  void end(bool Job::*how, const core::Error& reason) {
    const std::lock_guard held(mutex);
    this->*how = true;
    if (run != nullptr) run->cancel(reason);
    if (waiter != nullptr) waiter->notify();
  }
};

}  // namespace meshd::jobs
