// The session queue: which jobs of one session are not over, which of them commit in order, and which stored arrays
// each reads and updates. Jobs are identified by their numbers, which are assigned in the order of acceptance.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "service/core/waits/waiter_list.h"
#include "storage/rows/rows.h"

namespace meshd::sessions {

/// Ids of stored arrays that a job reads, updates and makes.
struct ArrayUses {
  std::set<std::string> reads;
  std::set<std::string> updates;
  std::set<std::string> makes = {};  ///< promised results: later jobs may read them, nobody did before
};

/// What a job does to its session's log.
enum class EffectOrder : uint8_t {
  kNone,       ///< nothing
  kUnordered,  ///< its effects enter when it commits, whenever that is; behind those of jobs before it that stream
  kOrdered,    ///< it commits in the order of numbers
  kStreaming,  ///< its effects enter while it runs: no effects of other jobs are between them
};

/// Any thread. Nothing here waits: callers watch() with a waiter, which is notified after each change, and check again.
///
/// Example: job 1 updates or makes array A, job 2 reads A, job 3 reads B; all have ordered effects. may_read(1) and
/// may_read(3) hold at once, may_read(2) once job 1 has left. is_next_in_order(3) holds once 1 and 2 have left.
class SessionQueue {
 public:
  /// A job was accepted with this number.
  void enter(int64_t number, EffectOrder effects, ArrayUses uses = {});
  /// The job is over, committed or not.
  void leave(int64_t number);
  /// The job ends here, but is not over: it runs again after the next start of the server, and so does everything
  /// behind it that waits for it.
  void put_back(int64_t number);
  /// A job with a lower number was put back.
  [[nodiscard]] bool is_behind_put_back(int64_t number) const;
  /// The job of this number has failed: those with higher ones neither read, update nor are next until resume().
  void halt(int64_t number);
  void resume();
  /// The queue is halted, and this job is behind the one that failed.
  [[nodiscard]] bool is_held(int64_t number) const;
  /// It is held for good: the session is being closed.
  [[nodiscard]] bool is_dropped(int64_t number) const;
  /// No job with a lower number is left that updates or makes what this one reads or updates, and it is not held.
  [[nodiscard]] bool may_read(int64_t number) const;
  /// No job with a lower number is left that reads what this one updates, and it is not held.
  [[nodiscard]] bool may_update(int64_t number) const;
  /// No ordered or streaming job with a lower number is left, for a streaming one no job with effects, and it is not
  /// held. Needed by ordered and streaming jobs, and to take from the session's queues.
  [[nodiscard]] bool is_next_in_order(int64_t number) const;
  /// The job may enter its effects, if it has any, into the log: is_next_in_order(), for an unordered one that no
  /// streaming job with a lower number is left. And it is not held.
  [[nodiscard]] bool may_log(int64_t number) const;

  /// What jobs of the session do that do not choose.
  void set_default_mode(storage::EffectMode mode) { default_mode_ = mode; }
  [[nodiscard]] storage::EffectMode default_mode() const { return default_mode_; }

  /// The session is being closed: jobs that wait for their client have to end.
  void close();
  [[nodiscard]] bool is_closing() const;

  /// The highest number of a job that is not over; 0: all are.
  [[nodiscard]] int64_t last_open() const;
  /// All jobs up to this number are over.
  [[nodiscard]] bool is_over(int64_t number) const;
  [[nodiscard]] int64_t open_count() const;

  /// Notified after leave(), put_back(), resume() and close().
  void watch(const core::WaiterRef& waiter) { watchers_.add(waiter); }

 private:
  [[nodiscard]] bool is_held_locked(int64_t number) const { return halted_by_ != 0 && number > halted_by_; }
  [[nodiscard]] bool is_next_locked(int64_t number) const;

  mutable std::mutex mutex_;
  std::set<int64_t> open_;
  // Each includes the next.
  std::set<int64_t> with_effects_;
  std::set<int64_t> ordered_;
  std::set<int64_t> streaming_;
  std::map<int64_t, ArrayUses> uses_;  ///< of open jobs with stored arrays
  std::set<int64_t> put_back_;
  int64_t halted_by_ = 0;  ///< the lowest number of a job that halted the session; 0: none
  bool is_closing_ = false;
  storage::EffectMode default_mode_ = storage::EffectMode::kAtomic;  ///< written before the queue is shared
  core::WaiterList watchers_;
};

}  // namespace meshd::sessions
