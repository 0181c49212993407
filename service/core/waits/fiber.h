// Fibers: bodies of code that release their thread while they wait. A request's handler runs on one, so that a client
// that waits, or whose upload trickles, costs a suspended stack and no thread. Switching is Boost.Context's; the
// steps around it:
//
//   1. prepare() makes the waiter of a body: the client's side may keep it to abandon the wait.
//   2. run() takes an idle stack (or maps one) and runs the body on the calling thread until it is over or waits.
//   3. FiberWaiter::wait() switches back to that thread. Only then, on the thread's own stack, the wait is committed;
//      earlier, another thread could continue on a stack that is still in use.
//   4. notify(), abandon() or the deadline ends the wait: the `resume` of prepare() gets the continuation and runs it
//      on some thread. So a body may see one thread before a wait and another after it.
//
// What follows for bodies: no lock is held over a wait; thread-local state (errno) is not read across one. State of
// exceptions in flight moves with the fiber. Bodies must not throw.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "service/core/waits/timers.h"
#include "service/core/waits/waiter.h"

namespace meshd::core {

class Fiber;
class Fibers;

/// The waiter of one body. wait() only on its fiber; the rest as of Waiter.
class FiberWaiter final : public Waiter, public std::enable_shared_from_this<FiberWaiter> {
 public:
  using Resume = std::function<void(std::function<void()>)>;

  FiberWaiter(Fibers& fibers, Resume resume);
  ~FiberWaiter() override;

  void wait(SteadyTime until) override;
  void notify() override;

 private:
  friend class Fibers;
  /// The wait begins now; false when it is over before it began. Behind true the fiber may be running elsewhere.
  bool commit();
  void go_on(bool is_notified);

  Fibers& fibers_;
  const Resume resume_;
  std::unique_ptr<Fiber> fiber_;  ///< until the body ends
  SteadyTime until_{};            ///< of the wait that is to be committed
  bool is_over_ = false;          ///< of the body; written by the thread that ran it
  std::mutex mutex_;
  bool is_notified_ = false;
  bool is_suspended_ = false;
  Timers::Id timer_ = 0;
};

/// All fibers of a process, or of a part of it. Any thread. Outlives its bodies.
class Fibers {
 public:
  explicit Fibers(Timers& timers);
  /// No body may be left.
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// The waiter counts as live from here on. `resume` is called by the thread that ends a wait, with a callable to run
  /// soon on a thread that may be occupied for as long as a body runs between two waits. It must not drop the callable.
  std::shared_ptr<FiberWaiter> prepare(FiberWaiter::Resume resume);
  /// Runs `body`, once, with a waiter of prepare(). Throws std::bad_alloc when no stack can be had; the body is not
  /// begun then.
  void run(const std::shared_ptr<FiberWaiter>& waiter, std::function<void()> body);

  /// Waiters whose bodies are not over, whether they have begun or not.
  [[nodiscard]] int64_t live() const;
  /// Waits until none is.
  void wait_until_idle();

 private:
  friend class FiberWaiter;
  /// On a thread's own stack: runs the body until it is over or its wait is committed.
  void drive(const std::shared_ptr<FiberWaiter>& waiter);
  void recycle(std::unique_ptr<Fiber> fiber);
  void leave();

  Timers& timers_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<std::unique_ptr<Fiber>> spare_;  ///< stacks without a body
  int64_t live_ = 0;
};

}  // namespace meshd::core
