// The worker pool: threads that serve one queue of work, with spare workers for threads that park inside a kernel.
// Idle workers spin for 50 us after their last work, as the next step of a run often follows at once, then wait on an
// atomic; strands and posted handlers of Boost.Asio cost ten times more. One more thread, of Boost.Asio, fires timers.
//
// Invariant: the configured number of workers serves at any time; the pool has at most 512 threads.
//
// 1. A thread that must wait inside a kernel gives its place (give_place): a surplus worker keeps serving, else a spare
//    worker wakes up, else a new one is made.
// 2. It parks (park) on its own ParkedThread.
// 3. To let it continue, the ParkedThread is posted like any work. The worker that takes it gives the thread its place
//    back and makes one worker surplus.
// 4. The next worker that finishes its work while there is a surplus becomes a spare one.
//
// Example: two workers, W1 and W2. W1 parks: W3 is made, W2 and W3 serve. W1's ParkedThread is posted and W2 takes it:
// W1 continues, and W2 becomes the spare worker. Again two serve.
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

/// A timer that is set; destroyed before its time, it does not fire.
class Timer {
 public:
  virtual ~Timer() = default;
};

class WorkerPool;

/// A thread that waits in the middle of its work. Posting it lets the thread continue.
class ParkedThread final : public Work {
 public:
  enum class Kind : uint8_t { kWorker, kLent };
  /// kLent: the thread gave no place, because it is no worker of the pool.
  ParkedThread(WorkerPool& pool, Kind kind) : pool_(pool), kind_(kind) {}
  void work() override;

 private:
  friend class WorkerPool;
  WorkerPool& pool_;
  const Kind kind_;
  std::atomic<bool> may_go_on_{false};
};

/// Any thread. The destructor waits for work in progress and drops what is queued.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Queues work `count` times (it is then called by up to so many threads at once) and wakes as many threads.
  void post(const std::shared_ptr<Work>& work, int count = 1);
  /// Work is about to be posted: where all workers sleep, one wakes up and spins for a moment. A hint; without it half
  /// of a short run is over before a virtual machine's second processor has woken.
  void expect_work();
  /// How much work is queued and not begun.
  [[nodiscard]] int64_t waiting() const { return waiting_count().load(std::memory_order_relaxed); }
  [[nodiscard]] const std::atomic<int64_t>& waiting_count() const;
  [[nodiscard]] int threads() const;
  /// How many workers have no work and spin: what is posted now begins within a microsecond or two. A hint.
  [[nodiscard]] int awake() const;
  /// How many threads post() has told of work, in all.
  [[nodiscard]] int64_t wake_ups() const;
  /// Calls `fire` on the timer thread at `time`.
  std::unique_ptr<Timer> at(core::SteadyTime time, std::function<void()> fire);

  /// Gives the calling worker's place to another, until take_place() or until a ParkedThread of it is posted. False
  /// when no thread can take it: the pool has its most threads.
  [[nodiscard]] bool give_place();
  void take_place();
  /// On the thread of `parked`, which has given its place: returns when `parked` has been posted and taken.
  static void park(ParkedThread& parked);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::device
