#include "service/device/worker_pool.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "service/core/keep_trying.h"
#include "service/core/locked.h"
#include "service/core/waits/spin.h"

namespace meshd::device {
namespace {

constexpr size_t kMostThreads = 512;  // parked ones and spare ones included

class AsioTimer final : public Timer {
 public:
  AsioTimer(boost::asio::thread_pool& pool, core::SteadyTime time, std::function<void()> fire)
      : timer_(std::make_shared<boost::asio::steady_timer>(pool, time)) {
    // The handler owns the timer: it may run while this object is destroyed.
    timer_->async_wait([timer = timer_, fire = std::move(fire)](const boost::system::error_code& error) {
      if (!error) fire();
    });
  }
  ~AsioTimer() override {
    core::keep_trying([&] { boost::asio::post(timer_->get_executor(), [timer = timer_] { timer->cancel(); }); });
  }
  AsioTimer(const AsioTimer&) = delete;
  AsioTimer& operator=(const AsioTimer&) = delete;

 private:
  std::shared_ptr<boost::asio::steady_timer> timer_;
};

}  // namespace

struct WorkerPool::Impl {
  explicit Impl(int count) : thread_count(count) {}

  const int thread_count;
  core::Locked<std::deque<std::shared_ptr<Work>>> queue;
  std::atomic<int64_t> waiting{0};
  std::atomic<int64_t> wake_ups{0};
  std::atomic<uint32_t> posted{0};    // changes with every post and at the end; idle threads wait on it
  std::atomic<int> awake{0};          // workers that spin
  std::atomic<bool> expected{false};  // work: the next idle worker spins
  std::atomic<bool> stopped{false};
  std::atomic<int64_t> surplus{0};  // workers that shall become spare ones

  mutable std::mutex mutex;  // of what follows
  std::condition_variable spare_is_called;
  int64_t spares = 0;  // not yet called
  int64_t calls = 0;   // without a spare worker yet
  std::vector<std::thread> workers;
  boost::asio::thread_pool timers{1};

  std::shared_ptr<Work> take() {
    if (waiting.load(std::memory_order_acquire) == 0) return nullptr;
    return queue.with([&](auto& list) -> std::shared_ptr<Work> {
      if (list.empty()) return nullptr;
      std::shared_ptr<Work> first = std::move(list.front());
      list.pop_front();
      waiting.fetch_sub(1, std::memory_order_relaxed);
      return first;
    });
  }

  void serve() {
    bool has_worked = false;
    while (true) {
      const uint32_t seen = posted.load(std::memory_order_acquire);
      if (stopped.load(std::memory_order_acquire)) return;
      if (std::shared_ptr<Work> next = take()) {
        next->work();
        next.reset();
        has_worked = true;
        if (surplus.load(std::memory_order_relaxed) > 0) stand_by();
        continue;
      }
      // The next step of a run often follows at once.
      const auto is_posted = [&] { return posted.load(std::memory_order_relaxed) != seen; };
      const bool is_expected = expected.load(std::memory_order_relaxed) && expected.exchange(false);
      if (std::exchange(has_worked, false) || is_expected) {
        awake.fetch_add(1, std::memory_order_relaxed);
        const bool goes_on = core::spin_until(is_posted);
        awake.fetch_sub(1, std::memory_order_relaxed);
        if (goes_on) continue;
      }
      posted.wait(seen, std::memory_order_acquire);
    }
  }

  // Becomes a spare worker, until one is called for.
  void stand_by() {
    std::unique_lock held(mutex);
    if (surplus.load(std::memory_order_relaxed) == 0) return;
    surplus.fetch_sub(1, std::memory_order_relaxed);
    ++spares;
    spare_is_called.wait(held, [&] { return calls > 0 || stopped.load(std::memory_order_acquire); });
    if (calls > 0) --calls;
  }
};

void ParkedThread::work() {
  if (kind_ == Kind::kWorker) pool_.take_place();
  may_go_on_.store(true, std::memory_order_release);
  may_go_on_.notify_all();
}

WorkerPool::WorkerPool(int threads) : impl_(std::make_unique<Impl>(threads)) {
  for (int i = 0; i < threads; ++i) impl_->workers.emplace_back([impl = impl_.get()] { impl->serve(); });
}

WorkerPool::~WorkerPool() {
  std::vector<std::thread> workers;
  {
    const std::lock_guard held(impl_->mutex);
    impl_->stopped.store(true, std::memory_order_release);
    workers.swap(impl_->workers);
  }
  impl_->posted.fetch_add(1, std::memory_order_release);
  impl_->posted.notify_all();
  impl_->spare_is_called.notify_all();
  for (std::thread& worker : workers) worker.join();
  impl_->timers.stop();
  impl_->timers.join();
}

void WorkerPool::post(const std::shared_ptr<Work>& work, int count) {
  impl_->queue.with([&](auto& list) {
    for (int i = 0; i < count; ++i) core::keep_trying([&] { list.push_back(work); });
    impl_->waiting.fetch_add(count, std::memory_order_release);
  });
  impl_->posted.fetch_add(1, std::memory_order_release);
  impl_->wake_ups.fetch_add(count, std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) impl_->posted.notify_one();
}

void WorkerPool::expect_work() {
  if (awake() > 0 || waiting() > 0 || impl_->expected.exchange(true)) return;
  impl_->posted.fetch_add(1, std::memory_order_release);
  impl_->posted.notify_one();
}

int64_t WorkerPool::wake_ups() const { return impl_->wake_ups.load(std::memory_order_relaxed); }

const std::atomic<int64_t>& WorkerPool::waiting_count() const { return impl_->waiting; }
int WorkerPool::threads() const { return impl_->thread_count; }
int WorkerPool::awake() const { return impl_->awake.load(std::memory_order_relaxed); }

std::unique_ptr<Timer> WorkerPool::at(core::SteadyTime time, std::function<void()> fire) {
  return std::make_unique<AsioTimer>(impl_->timers, time, std::move(fire));
}

bool WorkerPool::give_place() {
  const std::lock_guard held(impl_->mutex);
  if (impl_->surplus.load(std::memory_order_relaxed) > 0) {
    impl_->surplus.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  if (impl_->spares > 0) {
    --impl_->spares;
    ++impl_->calls;
    impl_->spare_is_called.notify_one();
    return true;
  }
  if (impl_->workers.size() >= kMostThreads) return false;
  try {
    impl_->workers.emplace_back([impl = impl_.get()] { impl->serve(); });
  } catch (const std::exception&) {  // no thread, or no memory for it
    return false;
  }
  return true;
}

void WorkerPool::park(ParkedThread& parked) { parked.may_go_on_.wait(false, std::memory_order_acquire); }

void WorkerPool::take_place() {
  const std::lock_guard held(impl_->mutex);
  impl_->surplus.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace meshd::device
