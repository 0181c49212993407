// The engine's threads: one Boost.Asio pool, over it a queue of ours, because strands and posted handlers cost ten
// times more than an atomic that is waited on (limits.md G). One more thread of the pool serves timers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "service/core/clock.h"

namespace meshd::device {

/// Something to do. Kept alive by the queue until work() returns.
class Work {
 public:
  virtual ~Work() = default;
  /// Called on a thread of the pool. Must not block; must not throw.
  virtual void work() = 0;
};

/// A timer that has been set; when it is destroyed before its time it does not ring.
class Timer {
 public:
  virtual ~Timer() = default;
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
  [[nodiscard]] int64_t waiting() const;
  [[nodiscard]] int threads() const;
  /// Calls `ring` on the timer thread at `time`.
  std::unique_ptr<Timer> at(core::SteadyTime time, std::function<void()> ring);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::device
