// A job that finds no memory while its run goes on. A program of its own: its allocations fail where a test says so.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // it looks into the operators below
#include <cstdlib>
#include <new>

#include "tests/unit/jobs/runner_bench.h"

namespace {
thread_local bool next_fails = false;
}  // namespace

void* operator new(size_t size) {
  if (std::exchange(next_fails, false)) throw std::bad_alloc();
  if (void* const made = std::malloc(size)) return made;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t& /*nothrow*/) noexcept { return std::malloc(size); }
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, size_t /*size*/) noexcept { std::free(made); }

namespace meshd::testing {
namespace {

class JobNoMemory : public RunnerBench {};

// Its thread's first allocation after the wait that finds memory short fails.
class WaiterShortOfMemory final : public core::Waiter {
 public:
  void wait(core::SteadyTime until) override {
    waiter_.wait(until);
    if (is_short.exchange(false)) next_fails = true;
  }
  void notify() override { waiter_.notify(); }
  std::atomic<bool> is_short = false;

 private:
  core::ThreadWaiter waiter_;
};

TEST_F(JobNoMemory, ends_its_run_before_it_ends) {
  const auto waiter = std::make_shared<WaiterShortOfMemory>();
  auto result = std::async(std::launch::async,
                           [&, ses = session()] { return runner().run(request(kTakes, ses), encode, waiter); });
  const auto run = engine_.next();
  ASSERT_TRUE(run->begin());
  waiter->is_short = true;
  while (waiter->is_short) waiter->notify();  // it has nothing to do yet, and allocates nothing
  EXPECT_FALSE(run->emit(1)) << "it waits for an entry, for which the job looks";
  try {
    result.get();
    FAIL() << "it needs an entry";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code().word(), "memory_exceeded");
  }
  EXPECT_TRUE(run->is_over()) << "it refers to the job";
}

}  // namespace
}  // namespace meshd::testing
