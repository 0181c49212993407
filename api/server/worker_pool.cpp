#include "api/server/worker_pool.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace meshd::api {

namespace {

constexpr std::chrono::seconds kIdle{10};

}  // namespace

WorkerPool::WorkerPool(int kept, int most, int queue)
    : kept_(kept), most_(std::max(most, 1)), queue_limit_(static_cast<size_t>(queue)) {
  left_.reserve(static_cast<size_t>(most_));  // a thread that ends allocates nothing
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::post(std::function<void()> task) { return enqueue(std::move(task), true); }

bool WorkerPool::post_next(std::function<void()> task) { return enqueue(std::move(task), false); }

bool WorkerPool::enqueue(std::function<void()> task, bool bounded) {
  {
    std::lock_guard held(mutex_);
    if (stopped_) return false;
    // Threads that are free or about to be take one waiting task each; the others wait.
    if (queue_.size() >= static_cast<size_t>(running_ - busy_) && running_ < most_) {
      join_left();
      try {
        threads_.emplace_back([this] { run(); });
        ++running_;
      } catch (const std::system_error&) {
        // The system has no thread for us: those that there are do the work.
        if (running_ == 0) return false;
      }
    }
    if (bounded && queue_.size() >= queue_limit_ + static_cast<size_t>(running_ - busy_)) return false;
    queue_.push_back(std::move(task));
  }
  work_.notify_one();
  return true;
}

void WorkerPool::run() {
  std::unique_lock held(mutex_);
  while (true) {
    const bool woken = work_.wait_for(held, kIdle, [this] { return stopped_ || !queue_.empty(); });
    if (!queue_.empty()) {
      std::function<void()> task = std::move(queue_.front());
      queue_.pop_front();
      ++busy_;
      held.unlock();
      task();
      task = nullptr;  // release its captures without the lock
      held.lock();
      --busy_;
    } else if (stopped_ || (!woken && running_ > kept_)) {
      break;
    }
  }
  --running_;
  left_.push_back(std::this_thread::get_id());
}

void WorkerPool::join_left() {
  for (const std::thread::id id : left_) {
    const auto thread = std::find_if(threads_.begin(), threads_.end(), [&](const auto& t) { return t.get_id() == id; });
    // It has let go of the lock for the last time, or is about to: this join is short.
    thread->join();
    threads_.erase(thread);
  }
  left_.clear();
}

void WorkerPool::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard held(mutex_);
    stopped_ = true;
    threads.swap(threads_);
    left_.clear();
  }
  work_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

int WorkerPool::threads() const {
  std::lock_guard held(mutex_);
  return running_;
}

int WorkerPool::queued() const {
  std::lock_guard held(mutex_);
  return static_cast<int>(queue_.size());
}

}  // namespace meshd::api
