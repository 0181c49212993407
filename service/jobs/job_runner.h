// Runs jobs, from the request to the commit: what others call, composed of a part for each step.
//   Admission  checks and plans the request, reserves donated arrays and writes the job's row, with its number in the
//              session (admission/admission.h).
//   JobQueue   holds background jobs until they may start (queue/job_queue.h).
//   Execution  binds arguments, runs on the engine, serves effects (execution/execution.h). Effects for outgoing
//              queues are committed while the run continues.
//   Commit     result blobs first, then arrays, effects, donation and the job's end in one transaction; then results
//              are visible (commit/commit.h).
//   Recovery   what a stop puts back, and a start takes up again (recovery/recovery.h).
// A job without session, key, stored result, update and donated durable array writes no row.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "service/core/memory_ledger.h"
#include "service/core/waits/waiter.h"
#include "service/core/waits/waiter_list.h"
#include "service/device/executor.h"
#include "service/effects/callback_store.h"
#include "service/effects/effect_log.h"
#include "service/effects/infeed_queues.h"
#include "service/jobs/job_request.h"
#include "service/jobs/job_statistics.h"
#include "service/jobs/job_view.h"
#include "service/jobs/runner_options.h"
#include "service/registry/registry.h"
#include "service/sessions/session_store.h"
#include "storage/store.h"

namespace meshd::jobs {

/// Any thread but the engine's. Calls that wait take a waiter (service/core/waits/waiter.h): a thread's or a request
/// fiber's.
class JobRunner {
 public:
  JobRunner(storage::Store& store, arrays::ArrayStore& arrays, compile::Compiler& compiler, device::Executor& engine,
            sessions::SessionStore& sessions, effects::EffectLog& log, effects::InfeedQueues& infeeds,
            effects::CallbackStore& callbacks, const core::Clock& clock, RunnerOptions options);
  /// Stops: jobs that wait stay queued for the next start, running ones are cancelled after their commit is impossible.
  ~JobRunner();

  /// Runs a job and returns its results. `encode` makes the document that the row keeps (with a session or key). A job
  /// without a row is cancelled when the waiter is abandoned; others continue. Throws the job's error; an accepted job
  /// is then failed.
  JobResult run(JobRequest request, const ResultEncoder& encode, const core::WaiterRef& waiter);
  /// Accepts a job and returns its id; it runs in the background. Throws precondition_failed when the id that the
  /// request chose is taken, queue_full when too many wait.
  std::string start(JobRequest request, ResultEncoder encode);

  storage::Page<storage::JobRow> list(std::string_view principal, const storage::JobFilter& filter,
                                      const storage::PageRequest& page);
  /// The job of an earlier request with this idempotency key; nothing for a new one. Throws idempotency_key_reused when
  /// that request had another fingerprint, not_found when its job was deleted.
  std::optional<JobView> find_repeated(std::string_view principal, std::string_view route, std::string_view key,
                                       std::string_view fingerprint, core::MemoryReservation& memory);
  /// The progress of the session's jobs that run, by number; of their rows only the ids. Reads no row: for readers that
  /// look again and again.
  std::vector<JobView> running(const std::string& session) const;
  /// `memory` holds what the answer takes, here and in find_repeated() and wait(). Throws not_found, memory_full.
  JobView view(const std::string& id, std::string_view principal, core::MemoryReservation& memory);
  /// The array that is, or is to be, a result of a background job of a session. Throws not_found where there is no such
  /// job, invalid_request where it makes no such array, dependency_failed where it did not, or cannot any more.
  std::string result_array(const std::string& id, int64_t result, std::string_view principal);
  /// Waits until the job is over, the time is up, the waiter is abandoned or the server stops. No time: what is shown
  /// agrees with the effects that are visible, where view() may show a job that has just committed as running.
  JobView wait(const std::string& id, std::string_view principal, std::chrono::milliseconds time,
               const core::WaiterRef& waiter, core::MemoryReservation& memory);
  /// Cancels a job that is not over, and deletes one that is, with its answer. Its effects stay in the log. A
  /// cancellation is durable when this returns: of it and the job's commit, the transaction that comes first wins. One
  /// that waits to be started is over at once. Throws not_found.
  enum class Removal : uint8_t { kCancelled, kDeleted };
  Removal cancel_or_delete(const std::string& id, std::string_view principal);
  /// Waits until everything accepted in the session so far is over (behaviour E10). Throws overloaded when it is not
  /// when the time is up, session_halted when some are held, draining when the server stops, cancelled when the waiter
  /// is abandoned.
  void barrier(const std::string& session, std::chrono::milliseconds time, const core::WaiterRef& waiter);
  /// A halted session goes on with the jobs that it held. `key`: as SessionStore::resume has it. Throws not_found,
  /// session_closed, idempotency_in_progress.
  void resume_session(const std::string& session, std::string_view principal,
                      std::optional<storage::IdempotencyRow> key = std::nullopt);
  /// Closes a session: ends jobs that wait for their client or are held, waits for the others as barrier() does, and
  /// forgets it. One that has been waited for in vain stays closed; closing it again waits again. Throws not_found.
  void close_session(const std::string& session, std::string_view principal, std::chrono::milliseconds time,
                     const core::WaiterRef& waiter);

  /// What jobs need beside their rows: those of before a restart, and those whose requests have left memory.
  struct RecoverySources {
    registry::ProgramRegistry& programs;
    mesh::Processes processes;  ///< labels of the server's devices
    std::function<ResultEncoder(const ResultForm&)> encoder;
    /// Reads a row that was written before there was a stored form (JobRow::request_version 0).
    std::function<JobRequest(const storage::JobRow&)> read_old_row;
  };
  /// Jobs that a crash or a stop left queued run again, in the order of their sessions. Once, at start.
  void recover(const RecoverySources& sources);
  /// No new jobs from now on (503); waits until running ones are over or the time is up, and cancels those that are
  /// left. What was accepted and is not over runs again after the next start, and nothing is counted against it. False:
  /// a run did not end a second after it was cancelled; its job is put back all the same.
  bool drain(std::chrono::milliseconds time);

  [[nodiscard]] JobCounters counters() const;
  [[nodiscard]] QueueRoom queue_room(const std::string& principal) const;
  /// Memory of results that are sent as they are, as the ledger shows its accounts; named "files".
  [[nodiscard]] core::MemoryLedger::Stats file_memory() const;
  /// The server is shutting down: waits should end.
  [[nodiscard]] bool is_stopping() const;

 private:
  struct Parts;
  /// Until all jobs of the session that are accepted by now are over.
  void wait_idle(sessions::SessionQueue& queue, std::chrono::milliseconds time, const core::WaiterRef& waiter);

  storage::Store& store_;
  sessions::SessionStore& sessions_;
  effects::EffectLog& log_;
  const core::Clock& clock_;
  core::WaiterList watchers_;  ///< of waiting calls, notified when the server stops
  const std::unique_ptr<Parts> parts_;
};

}  // namespace meshd::jobs
