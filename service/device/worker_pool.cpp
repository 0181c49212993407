#include "service/device/worker_pool.h"

#include <atomic>
#include <deque>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "service/core/locked.h"

namespace meshd::device {
namespace {

class AsioTimer final : public Timer {
 public:
  AsioTimer(boost::asio::thread_pool& pool, core::SteadyTime time, std::function<void()> ring)
      : timer_(std::make_shared<boost::asio::steady_timer>(pool, time)) {
    // The handler owns the timer: it may run while this object is destroyed.
    timer_->async_wait([timer = timer_, ring = std::move(ring)](const boost::system::error_code& error) {
      if (!error) ring();
    });
  }
  ~AsioTimer() override {
    boost::asio::post(timer_->get_executor(), [timer = timer_] { timer->cancel(); });
  }
  AsioTimer(const AsioTimer&) = delete;
  AsioTimer& operator=(const AsioTimer&) = delete;

 private:
  std::shared_ptr<boost::asio::steady_timer> timer_;
};

}  // namespace

struct WorkerPool::Impl {
  explicit Impl(int count) : threads(count), pool(static_cast<size_t>(count) + 1) {}

  const int threads;
  core::Locked<std::deque<std::shared_ptr<Work>>> queue;
  std::atomic<int64_t> waiting{0};
  std::atomic<uint32_t> posted{0};  // changes with every post and at the end; idle threads wait on it
  std::atomic<bool> stopped{false};
  boost::asio::thread_pool pool;

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
    while (true) {
      const uint32_t seen = posted.load(std::memory_order_acquire);
      if (stopped.load(std::memory_order_acquire)) return;
      if (const std::shared_ptr<Work> next = take()) {
        next->work();
        continue;
      }
      posted.wait(seen, std::memory_order_acquire);
    }
  }
};

WorkerPool::WorkerPool(int threads) : impl_(std::make_unique<Impl>(threads)) {
  for (int i = 0; i < threads; ++i) boost::asio::post(impl_->pool, [impl = impl_.get()] { impl->serve(); });
}

WorkerPool::~WorkerPool() {
  impl_->stopped.store(true, std::memory_order_release);
  impl_->posted.fetch_add(1, std::memory_order_release);
  impl_->posted.notify_all();
  impl_->pool.stop();
  impl_->pool.join();
}

void WorkerPool::post(const std::shared_ptr<Work>& work, int count) {
  impl_->queue.with([&](auto& list) {
    for (int i = 0; i < count; ++i) list.push_back(work);
    impl_->waiting.fetch_add(count, std::memory_order_release);
  });
  impl_->posted.fetch_add(1, std::memory_order_release);
  for (int i = 0; i < count; ++i) impl_->posted.notify_one();
}

int64_t WorkerPool::waiting() const { return impl_->waiting.load(std::memory_order_relaxed); }
int WorkerPool::threads() const { return impl_->threads; }

std::unique_ptr<Timer> WorkerPool::at(core::SteadyTime time, std::function<void()> ring) {
  return std::make_unique<AsioTimer>(impl_->pool, time, std::move(ring));
}

}  // namespace meshd::device
