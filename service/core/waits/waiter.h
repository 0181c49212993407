// A wait of a request or a job for an event of another thread: a reply, its turn, the end of a job. ThreadWaiter blocks
// its thread; a request's fiber releases its thread meanwhile (service/core/waits/fiber.h). Code that waits takes a
// Waiter and works with both.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "service/core/clock.h"

namespace meshd::core {

/// A binary semaphore with a deadline. wait() belongs to one thread or fiber; the rest is for any thread. The notifying
/// side holds it by shared_ptr or weak_ptr, because the waiting side may end first.
///
/// Typical use, where `there` is guarded by a mutex of the caller's:
///   subscribe([weak = std::weak_ptr(waiter)] { if (auto w = weak.lock()) w->notify(); });
///   while (!there() && !waiter->is_abandoned() && now < deadline) waiter->wait(deadline);
class Waiter {
 public:
  virtual ~Waiter() = default;

  /// Returns when notify() was called since the last wait() returned, at once if that is so already, or when `until`
  /// has passed. May return early: check the condition again. The caller holds no lock and is in no catch block.
  virtual void wait(SteadyTime until) = 0;
  /// Ends the current wait, or the next one.
  virtual void notify() = 0;

  /// The client has disconnected or the server stops: waits for them alone should end. Also ends the wait.
  void abandon() {
    std::function<void()> call;
    {
      const std::lock_guard held(abandon_mutex_);
      is_abandoned_.store(true, std::memory_order_release);
      call = std::move(on_abandon_);
      on_abandon_ = nullptr;
    }
    if (call) call();
    notify();
  }
  /// `call` runs once, on whatever thread abandons; at once if that has happened. For work that continues after the
  /// wait. Replaces the one set before; null takes it back.
  void on_abandon(std::function<void()> call) {
    {
      const std::lock_guard held(abandon_mutex_);
      if (!is_abandoned()) {
        on_abandon_ = std::move(call);
        return;
      }
    }
    if (call) call();
  }
  [[nodiscard]] bool is_abandoned() const { return is_abandoned_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_abandoned_{false};
  std::mutex abandon_mutex_;
  std::function<void()> on_abandon_;
};
using WaiterRef = std::shared_ptr<Waiter>;

/// Waits by keeping the thread.
class ThreadWaiter final : public Waiter {
 public:
  void wait(SteadyTime until) override {
    std::unique_lock held(mutex_);
    notified_.wait_until(held, until, [this] { return is_notified_; });
    is_notified_ = false;
  }
  void notify() override {
    {
      const std::lock_guard held(mutex_);
      is_notified_ = true;
    }
    notified_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable notified_;
  bool is_notified_ = false;
};

}  // namespace meshd::core
