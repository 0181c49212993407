// The pool of workers: bounds, and stopping.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <vector>

#include "api/server/worker_pool.h"

namespace meshd::api {
namespace {

TEST(WorkerPool, takes_as_many_as_threads_and_queue) {
  WorkerPool pool(1, 2, 3);
  std::latch gate(1);
  std::atomic<int> ran{0};
  const auto task = [&] {
    gate.wait();
    ++ran;
  };
  int taken = 0;
  for (int i = 0; i < 10; ++i) taken += pool.post(task) ? 1 : 0;
  EXPECT_EQ(5, taken);
  EXPECT_TRUE(pool.post_next(task));
  EXPECT_EQ(2, pool.threads());
  gate.count_down();
  pool.stop();
  EXPECT_EQ(6, ran.load());
  EXPECT_FALSE(pool.post(task));
  EXPECT_FALSE(pool.post_next(task));
}

TEST(WorkerPool, every_task_runs_once) {
  std::vector<std::atomic<int>> ran(5000);
  WorkerPool pool(2, 8, 5000);
  for (size_t i = 0; i < ran.size(); ++i) ASSERT_TRUE(pool.post([&ran, i] { ++ran[i]; }));
  pool.stop();
  for (const auto& count : ran) EXPECT_EQ(1, count.load());
}

}  // namespace
}  // namespace meshd::api
