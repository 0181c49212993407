#include "service/jobs/fiber_pool.h"

#include <memory>
#include <new>
#include <utility>

namespace meshd::jobs {

FiberPool::FiberPool(int threads) : timers_(std::make_unique<core::Timers>()), fibers_(*timers_) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

FiberPool::~FiberPool() {
  {
    std::unique_lock held(mutex_);
    idle_.wait(held, [this] { return live_ == 0; });
    stopping_ = true;
  }
  there_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  timers_.reset();  // what it calls uses the members above
}

void FiberPool::start(Body body) {
  {
    const std::lock_guard held(mutex_);
    ++live_;
  }
  const auto counted = [this, body = std::move(body)](const core::WaiterRef& waiter) {
    body(waiter);
    const std::lock_guard held(mutex_);
    if (--live_ == 0) idle_.notify_all();
  };
  std::shared_ptr<core::FiberWaiter> waiter =
      fibers_.prepare([this](std::function<void()> go_on) { post(std::move(go_on)); });
  post([this, waiter = std::move(waiter), counted] {
    try {
      fibers_.run(waiter, [counted, waiter] { counted(waiter); });
    } catch (const std::bad_alloc&) {
      // There is no memory for a stack: the thread's own does.
      counted(std::make_shared<core::ThreadWaiter>());
    }
  });
}

int64_t FiberPool::live() const {
  const std::lock_guard held(mutex_);
  return live_;
}

void FiberPool::post(std::function<void()> task) {
  {
    const std::lock_guard held(mutex_);
    tasks_.push_back(std::move(task));
  }
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
