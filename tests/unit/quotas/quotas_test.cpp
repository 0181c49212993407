// What principals may have: counts and bytes held exactly by threads at once, and requests a second.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "service/core/error.h"
#include "service/quotas/array_ledger.h"
#include "service/quotas/rate_limiter.h"

namespace meshd::quotas {
namespace {

using std::chrono::milliseconds;

template <typename F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
  return {};
}

Limits limits(int64_t arrays, int64_t bytes) {
  Limits out;
  out.arrays = arrays;
  out.array_bytes = bytes;
  return out;
}

TEST(ArrayLedger, charge_is_held_until_it_is_released) {
  ArrayLedger ledger(limits(2, 100));
  ArrayCharge first = ledger.charge("ann", 60);
  EXPECT_EQ(60, ledger.totals("ann").bytes);
  EXPECT_TRUE(refusal([&] { ledger.charge("ann", 41); }).starts_with("quota_exceeded: an array of 41 bytes"));
  EXPECT_EQ(1, ledger.totals("ann").arrays);
  {
    const ArrayCharge second = ledger.charge("ann", 40);
    EXPECT_TRUE(refusal([&] { ledger.charge("ann", 0); }).starts_with("limit_reached: principal 'ann' has 2 arrays"));
    EXPECT_EQ("", refusal([&] { ledger.charge("bob", 100); }));
  }
  first.release();
  first.release();
  EXPECT_EQ(0, ledger.totals("ann").arrays);
  EXPECT_EQ(0, ledger.totals("ann").bytes);
}

TEST(ArrayLedger, moved_charge_is_given_back_once) {
  ArrayLedger ledger(limits(0, 0));
  ArrayCharge to;
  {
    ArrayCharge from = ledger.charge("ann", 8);
    to = std::move(from);
  }
  EXPECT_EQ(1, ledger.totals("ann").arrays);
  to = ArrayCharge();
  EXPECT_EQ(0, ledger.totals("ann").arrays);
}

TEST(ArrayLedger, bytes_of_running_requests_count_beside_the_arrays) {
  ArrayLedger ledger({.array_bytes = 100, .arrays = 1});
  const ArrayCharge array = ledger.charge("ann", 40);
  {
    ArrayCharge first = ledger.charge_bytes("ann", 40, "data");
    EXPECT_EQ(ledger.totals("ann").arrays, 1) << "no array more";
    EXPECT_EQ(ledger.totals("ann").bytes, 80);
    EXPECT_EQ(refusal([&] { ledger.charge_bytes("ann", 21, "data"); }).substr(0, 14), "quota_exceeded");
    const ArrayCharge last = ledger.charge_bytes("ann", 20, "data");
    EXPECT_EQ(refusal([&] { first.grow(1); }).substr(0, 14), "quota_exceeded");
    ledger.charge_bytes("bob", 100, "data");
  }
  EXPECT_EQ(ledger.totals("ann").bytes, 40);
  ArrayCharge alone = ledger.charge_bytes("cid", 5, "data");
  alone.release();
  EXPECT_EQ(ledger.totals("cid").bytes, 0);
}

TEST(ArrayLedger, what_was_there_counts_also_over_the_limit) {
  ArrayLedger ledger(limits(2, 0));
  ledger.count("ann", {3, 30});
  EXPECT_NE("", refusal([&] { ledger.charge("ann", 1); }));
  ledger.counted("ann", 10).release();
  ledger.counted("ann", 10).release();
  EXPECT_EQ(10, ledger.totals("ann").bytes);
  EXPECT_EQ("", refusal([&] { ledger.charge("ann", 1); }));
}

TEST(ArrayLedger, sizes_near_the_end_of_the_numbers_do_not_wrap) {
  ArrayLedger ledger(limits(0, INT64_MAX));
  const ArrayCharge large = ledger.charge("ann", INT64_MAX - 1);
  EXPECT_NE("", refusal([&] { ledger.charge("ann", INT64_MAX); }));
}

TEST(ArrayLedger, charge_may_outlive_the_ledger) {
  auto ledger = std::make_unique<ArrayLedger>(limits(1, 1));
  const ArrayCharge charge = ledger->charge("ann", 1);
  ledger.reset();
}

TEST(ArrayLedger, threads_at_once_get_exactly_the_limit) {
  constexpr int kThreads = 8;
  constexpr int kTries = 200;
  ArrayLedger ledger(limits(100, 0));
  std::atomic<int> got = 0;
  std::vector<std::vector<ArrayCharge>> held(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTries; ++i) {
        try {
          held[static_cast<size_t>(t)].push_back(ledger.charge("ann", 1));
          ++got;
        } catch (const core::Error&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(100, got);
  held.clear();
  EXPECT_EQ(0, ledger.totals("ann").arrays);
}

TEST(TokenBucket, holds_one_second_and_refills_by_time) {
  const core::SteadyTime start{};
  TokenBucket bucket(4, start);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(bucket.take(start)) << i;
  EXPECT_FALSE(bucket.take(start));
  EXPECT_FALSE(bucket.take(start + milliseconds(249)));
  EXPECT_TRUE(bucket.take(start + milliseconds(251)));
  EXPECT_FALSE(bucket.take(start + milliseconds(252)));
  EXPECT_EQ(4, bucket.left(start + milliseconds(60'000)));
  EXPECT_TRUE(bucket.is_full(start + milliseconds(60'000)));
}

class StillClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime wall() const override { return {}; }
  [[nodiscard]] core::SteadyTime steady() const override { return now; }
  core::SteadyTime now{};
};

TEST(RateLimiter, principals_have_buckets_of_their_own) {
  StillClock clock;
  RateLimiter limiter(2, clock);
  limiter.take("ann");
  limiter.take("ann");
  EXPECT_TRUE(refusal([&] { limiter.take("ann"); }).starts_with("too_many_requests: principal 'ann' may make 2"));
  EXPECT_EQ(0, limiter.left("ann"));
  EXPECT_EQ(2, limiter.left("bob"));
  EXPECT_EQ("", refusal([&] { limiter.take("bob"); }));
  clock.now += milliseconds(1000);
  EXPECT_EQ("", refusal([&] { limiter.take("ann"); }));
}

TEST(RateLimiter, many_principals_are_forgotten_without_forgetting_who_waits) {
  StillClock clock;
  RateLimiter limiter(1, clock);
  for (int i = 0; i < 5000; ++i) {
    clock.now += milliseconds(10);
    limiter.take("made-up-" + std::to_string(i));
  }
  EXPECT_NE("", refusal([&] { limiter.take("made-up-4999"); }));
  EXPECT_EQ("", refusal([&] { limiter.take("made-up-0"); }));
}

TEST(RateLimiter, zero_is_any_number) {
  StillClock clock;
  RateLimiter limiter(0, clock);
  for (int i = 0; i < 1000; ++i) limiter.take("ann");
}

}  // namespace
}  // namespace meshd::quotas
