// The engine's threads: workers that serve a queue of ours, because strands and posted handlers cost ten times more
// than an atomic that is waited on (limits.md G). One more thread, of Boost.Asio, fires timers.
//
// As many workers as asked for serve at any time. A thread that has to wait in the middle of a kernel gives its place
// to a spare worker and parks; when it is its turn again, the worker that takes it out of the queue becomes a spare
// one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "service/core/clock.h"

namespace meshd::device {

/// Something to do. Kept alive by the queue until work() returns.
class Work {
 public:
  virtual ~Work() = default;
  /// Called on a thread of the pool. Must not block, except in WorkerPool::park(); must not throw.
  virtual void work() = 0;
};

/// A timer that has been set; when it is destroyed before its time it does not fire.
class Timer {
 public:
  virtual ~Timer() = default;
};

class WorkerPool;

/// A thread that waits in the middle of its work. Posting it lets the thread go on.
class ParkedThread final : public Work {
 public:
  enum class Kind : uint8_t { kWorker, kLent };
  /// kLent: the thread has given no place, as it is no worker of the pool.
  ParkedThread(WorkerPool& pool, Kind kind) : pool_(pool), kind_(kind) {}
  void work() override;

 private:
  friend class WorkerPool;
  WorkerPool& pool_;
  const Kind kind_;
  std::atomic<bool> may_go_on_{false};
};

/// Any thread. The destructor waits for work that is being done and drops what is queued.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Queues work `count` times (it is then called by up to so many threads at once) and wakes as many threads.
  void post(const std::shared_ptr<Work>& work, int count = 1);
  /// Work that nobody has begun.
  [[nodiscard]] int64_t waiting() const { return waiting_count().load(std::memory_order_relaxed); }
  [[nodiscard]] const std::atomic<int64_t>& waiting_count() const;
  [[nodiscard]] int threads() const;
  /// Calls `fire` on the timer thread at `time`.
  std::unique_ptr<Timer> at(core::SteadyTime time, std::function<void()> fire);

  /// The calling worker's place is another's, until take_place() or until a ParkedThread of it is posted. False when
  /// there is nobody who could take it: so many threads wait already.
  [[nodiscard]] bool give_place();
  void take_place();
  /// On the thread that `parked` stands for, which has given its place: returns when `parked` was posted and taken.
  static void park(ParkedThread& parked);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::device
