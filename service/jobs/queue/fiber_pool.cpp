#include "service/jobs/queue/fiber_pool.h"

#include <memory>
#include <new>
#include <utility>

#include "service/core/keep_trying.h"

namespace meshd::jobs {

FiberPool::FiberPool(int threads) : FiberPool(threads, std::make_unique<core::Timers>()) {}

FiberPool::FiberPool(int threads, const core::Clock& clock)
    : FiberPool(threads, std::make_unique<core::Timers>(clock)) {}

FiberPool::FiberPool(int threads, std::unique_ptr<core::Timers> timers)
    : timers_(std::move(timers)), fibers_(*timers_) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

FiberPool::~FiberPool() {
  fibers_.wait_until_idle();
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
  }
  there_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  timers_.reset();  // what it calls uses the members above
}

void FiberPool::start(Body body) {
  std::shared_ptr<core::FiberWaiter> waiter =
      fibers_.prepare([this](std::function<void()> go_on) { post(std::move(go_on)); });
  post([this, waiter = std::move(waiter), body = std::move(body)] {
    try {
      fibers_.run(waiter, [body, waiter] { body(waiter); });
    } catch (const std::bad_alloc&) {
      // There is no memory for a stack: the thread's own does. Nobody else would run the body.
      body(core::keep_trying([] { return std::make_shared<core::ThreadWaiter>(); }));
    }
  });
}

void FiberPool::post(std::function<void()> task) {
  // Notified under the lock: once the task has run, the pool may end before this returns.
  const std::lock_guard held(mutex_);
  tasks_.push_back(std::move(task));
  there_.notify_one();
}

void FiberPool::work() {
  std::unique_lock held(mutex_);
  for (;;) {
    there_.wait(held, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    held.unlock();
    task();
    task = nullptr;
    held.lock();
  }
}

}  // namespace meshd::jobs
