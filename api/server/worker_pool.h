// The thread pool of handlers that may wait. Few threads are kept, more are started under load, and the queue is
// bounded: beyond it the caller responds 503.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace meshd::api {

/// Any thread may post. Tasks must not throw.
class WorkerPool {
 public:
  /// At most `most` threads at once, of which `kept` stay when there is nothing to do; threads start when they are
  /// needed.
  WorkerPool(int kept, int most, int queue);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False, and the task is not taken, when the queue is full, no thread can be had, or the pool is stopped.
  bool post(std::function<void()> task);
  /// For the next step of work that was admitted already: the queue's bound is ignored. False only when stopped.
  bool post_next(std::function<void()> task);
  /// Runs what is queued to its end and joins. Afterwards nothing is taken.
  void stop();

  [[nodiscard]] int threads() const;
  [[nodiscard]] int queued() const;

 private:
  bool enqueue(std::function<void()> task, bool bounded);
  void run();
  void join_left();

  const int kept_;
  const int most_;
  const size_t queue_limit_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
  std::vector<std::thread::id> left_;  ///< threads that ended and are to be joined
  int running_ = 0;
  int busy_ = 0;
  bool stopped_ = false;
};

}  // namespace meshd::api
