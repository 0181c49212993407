// A pool of a few threads that run any number of fibers: one that waits releases its thread to the next.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "service/core/waits/fiber.h"
#include "service/core/waits/timers.h"

namespace meshd::jobs {

/// Any thread.
class FiberPool {
 public:
  explicit FiberPool(int threads);
  /// Waits of bodies end when this clock says so.
  FiberPool(int threads, const core::Clock& clock);
  /// Waits until all bodies are over.
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  using Body = std::function<void(const core::WaiterRef&)>;
  /// Runs the body soon. It must not throw, and must not block for long but in its waiter.
  void start(Body body);
  [[nodiscard]] core::Timers& timers() { return *timers_; }

 private:
  FiberPool(int threads, std::unique_ptr<core::Timers> timers);
  void post(std::function<void()> task);
  void work();

  std::unique_ptr<core::Timers> timers_;
  core::Fibers fibers_;
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace meshd::jobs
