// Fibers: bodies that wait give their thread back, and go on wherever they are resumed.
#include "service/core/waits/fiber.h"
#include "tests/support/eventually.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace meshd::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

SteadyTime far_away() { return steady_clock::now() + std::chrono::minutes(10); }

/// Threads that run what is posted, each time another one may take it.
class Threads {
 public:
  explicit Threads(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Threads() {
    {
      const std::lock_guard held(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void post(std::function<void()> task) {
    // Notified under the lock: the test may end as soon as the task has run.
    const std::lock_guard held(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }
  FiberWaiter::Resume resume() {
    return [this](std::function<void()> task) { post(std::move(task)); };
  }

 private:
  void run() {
    std::unique_lock held(mutex_);
    while (true) {
      changed_.wait(held, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      held.unlock();
      task();
      held.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

TEST(Fiber, a_body_that_does_not_wait_runs_to_its_end_on_the_caller) {
  Timers timers;
  Fibers fibers(timers);
  bool ran = false;
  const auto thread = std::this_thread::get_id();
  fibers.run(fibers.prepare([](auto) { FAIL() << "nothing was resumed"; }),
             [&] { ran = std::this_thread::get_id() == thread; });
  EXPECT_TRUE(ran);
  EXPECT_EQ(fibers.live(), 0);
}

TEST(Fiber, a_thousand_bodies_wait_on_two_threads) {
  Timers timers;
  Fibers fibers(timers);
  std::atomic<int> waiting{0};
  std::atomic<int> over{0};
  std::vector<std::shared_ptr<FiberWaiter>> waiters;
  {
    Threads threads(2);
    for (int i = 0; i < 1000; ++i) {
      waiters.push_back(fibers.prepare(threads.resume()));
      threads.post([&, waiter = waiters.back()] {
        fibers.run(waiter, [&, waiter = waiter.get()] {
          waiting.fetch_add(1);
          while (!waiter->is_abandoned()) waiter->wait(far_away());
          over.fetch_add(1);
        });
      });
    }
    EXPECT_TRUE(testing::eventually([&] { return waiting.load() == 1000; }));
    EXPECT_EQ(over.load(), 0);
    for (const auto& waiter : waiters) waiter->abandon();
    fibers.wait_until_idle();
  }
  EXPECT_EQ(over.load(), 1000);
}

TEST(Fiber, a_notification_before_the_wait_is_remembered_once) {
  Timers timers;
  Fibers fibers(timers);
  Threads threads(1);
  const auto waiter = fibers.prepare(threads.resume());
  waiter->notify();
  waiter->notify();
  bool second_timed_out = false;
  fibers.run(waiter, [&] {
    waiter->wait(far_away());
    const auto end = steady_clock::now() + milliseconds(5);
    waiter->wait(end);
    second_timed_out = steady_clock::now() >= end;
  });
  fibers.wait_until_idle();
  EXPECT_TRUE(second_timed_out);
}

TEST(Fiber, notifications_from_everywhere_lose_no_wake_up) {
  Timers timers;
  Fibers fibers(timers);
  constexpr int kRounds = 20000;
  std::atomic<int> asked{0};
  std::atomic<int> answered{0};
  {
    Threads threads(2);
    const auto waiter = fibers.prepare(threads.resume());
    std::thread other([&] {
      for (int i = 1; i <= kRounds; ++i) {
        while (asked.load() < i) asked.wait(i - 1);
        answered.store(i);
        waiter->notify();
      }
    });
    fibers.run(waiter, [&] {
      for (int i = 1; i <= kRounds; ++i) {
        asked.store(i);
        asked.notify_one();
        while (answered.load() < i) waiter->wait(far_away());
      }
    });
    fibers.wait_until_idle();
    other.join();
  }
  EXPECT_EQ(answered.load(), kRounds);
}

// The runtime's state of exceptions belongs to the fiber: two bodies that are in the middle of one do not meet.
TEST(Fiber, an_exception_that_is_handled_survives_a_change_of_fibers) {
  Timers timers;
  Fibers fibers(timers);
  std::vector<std::string> caught;
  std::mutex mutex;
  std::vector<std::shared_ptr<FiberWaiter>> waiters;
  {
    Threads threads(1);
    for (int i = 0; i < 8; ++i) waiters.push_back(fibers.prepare(threads.resume()));
    for (int i = 0; i < 8; ++i) {
      threads.post([&, i] {
        fibers.run(waiters[static_cast<size_t>(i)], [&, i] {
          FiberWaiter& waiter = *waiters[static_cast<size_t>(i)];
          try {
            try {
              throw std::runtime_error("body " + std::to_string(i));
            } catch (...) {
              while (!waiter.is_abandoned()) waiter.wait(far_away());
              throw;
            }
          } catch (const std::exception& error) {
            const std::lock_guard held(mutex);
            caught.emplace_back(error.what());
          }
        });
      });
    }
    for (size_t i = waiters.size(); i-- > 0;) waiters[i]->abandon();
    fibers.wait_until_idle();
  }
  std::sort(caught.begin(), caught.end());
  ASSERT_EQ(caught.size(), 8U);
  for (size_t i = 0; i < caught.size(); ++i) EXPECT_EQ(caught[i], "body " + std::to_string(i));
}

TEST(Fiber, stacks_are_deep_and_used_again) {
  Timers timers;
  Fibers fibers(timers);
  const std::function<int(int)> dive = [&](int depth) {
    volatile char room[4096] = {};
    room[depth % 4096] = 1;
    return depth == 0 ? 0 : dive(depth - 1) + room[depth % 4096];
  };
  for (int i = 0; i < 100; ++i) {
    int reached = 0;
    fibers.run(fibers.prepare([](auto) {}), [&] { reached = dive(300); });
    EXPECT_EQ(reached, 300);
  }
}

TEST(Timers, call_in_the_order_of_their_times_and_not_behind_cancel) {
  Timers timers;
  std::mutex mutex;
  std::vector<int> order;
  std::atomic<bool> last{false};
  const auto now = steady_clock::now();
  const auto note = [&](int number) {
    const std::lock_guard held(mutex);
    order.push_back(number);
  };
  timers.at(now + milliseconds(30), [&] {
    note(3);
    last.store(true);
  });
  timers.at(now + milliseconds(10), [&] { note(1); });
  timers.cancel(timers.at(now + milliseconds(15), [&] { note(0); }));
  timers.at(now + milliseconds(20), [&] { note(2); });
  EXPECT_TRUE(testing::eventually([&] { return last.load(); }));
  const std::lock_guard held(mutex);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace meshd::core
