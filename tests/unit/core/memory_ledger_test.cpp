#include "service/core/memory_ledger.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <new>
#include <thread>
#include <vector>

#include "service/core/error.h"

namespace meshd::core {
namespace {

// Limits: requests, answers and events 4,000 each, downloads 2,000, programs 1,000, all together 5,000.
constexpr int64_t kLimit = 5'000;

MemoryLedger::Stats stats_of(const MemoryLedger& ledger, MemoryAccount account) {
  return ledger.stats()[static_cast<size_t>(account)];
}

std::string word_of_refusal(MemoryReservation& reservation, int64_t bytes) {
  try {
    reservation.grow(bytes);
  } catch (const Error& error) {
    return std::string(error.code().word());
  }
  return "";
}

TEST(MemoryLedger, shares_stay_within_the_memory) {
  for (const int64_t memory : {int64_t{64} << 20, int64_t{1} << 30, (int64_t{24} << 30) + 12'345}) {
    const MemoryShares shares = memory_shares(memory);
    EXPECT_LT(shares.jobs + shares.arrays + shares.accounted, memory);
    EXPECT_LT(shares.recycled, shares.jobs);
    EXPECT_GT(shares.accounted, 0);
  }
}

TEST(MemoryLedger, reservation_gives_back_what_it_holds) {
  const auto ledger = MemoryLedger::create(kLimit);
  {
    MemoryReservation held(ledger, MemoryAccount::kRequests);
    held.grow(700);
    held.shrink(200);
    EXPECT_EQ(stats_of(*ledger, MemoryAccount::kRequests).held_bytes, 500);
    MemoryReservation moved = std::move(held);
    EXPECT_EQ(moved.bytes(), 500);
    MemoryReservation other(ledger, MemoryAccount::kEvents);
    other.grow(100);
    other = std::move(moved);
    EXPECT_EQ(stats_of(*ledger, MemoryAccount::kEvents).held_bytes, 0);
    EXPECT_EQ(ledger->held_bytes(), 500);
  }
  EXPECT_EQ(ledger->held_bytes(), 0);
  EXPECT_EQ(stats_of(*ledger, MemoryAccount::kRequests).peak_bytes, 700);
}

// One principal's slow bodies do not take the room of everybody.
TEST(MemoryLedger, an_owner_has_a_share_of_an_account) {
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryShareTable shares(3'000);
  MemoryReservation first(ledger, MemoryAccount::kRequests), second(ledger, MemoryAccount::kRequests),
      other(ledger, MemoryAccount::kRequests);
  first.count_in(shares.of("ann"));
  second.count_in(shares.of("ann"));
  other.count_in(shares.of("bob"));
  EXPECT_EQ(first.limit_bytes(), 3'000);
  first.grow(2'000);
  EXPECT_EQ(word_of_refusal(second, 1'500), "memory_full");
  EXPECT_EQ(word_of_refusal(second, 3'500), "body_too_large");
  EXPECT_EQ(word_of_refusal(other, 1'500), "");
  EXPECT_EQ(word_of_refusal(second, 600), "memory_full") << "within the share, but the account is full";
  other.shrink(1'500);
  EXPECT_EQ(word_of_refusal(second, 1'000), "");
  second.grow_regardless(500);
  first = {};
  EXPECT_EQ(word_of_refusal(second, 1'600), "body_too_large") << "more than the share by itself";
  EXPECT_EQ(word_of_refusal(second, 1'500), "");
  second = {};
  EXPECT_EQ(shares.of("ann")->held_bytes(), 0);
  EXPECT_EQ(ledger->held_bytes(), 0);
}

TEST(MemoryLedger, owners_who_hold_nothing_are_forgotten) {
  MemoryShareTable shares(3'000);
  const MemoryShareRef kept = shares.of("kept");
  kept->take_anyway(10);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(shares.of(std::to_string(i))->held_bytes(), 0);
  EXPECT_EQ(shares.of("kept"), kept);
}

TEST(MemoryLedger, full_account_refuses_and_keeps_what_was_held) {
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryReservation first(ledger, MemoryAccount::kAnswers), second(ledger, MemoryAccount::kAnswers);
  first.grow(3'500);
  EXPECT_EQ(word_of_refusal(second, 501), "memory_full");
  EXPECT_EQ(second.bytes(), 0);
  EXPECT_EQ(stats_of(*ledger, MemoryAccount::kAnswers).held_bytes, 3'500);
  EXPECT_EQ(stats_of(*ledger, MemoryAccount::kAnswers).refused, 1);
  EXPECT_TRUE(second.try_grow(500));
}

TEST(MemoryLedger, what_never_fits_is_no_matter_of_waiting) {
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryReservation held(ledger, MemoryAccount::kRequests);
  held.grow(3'000);
  EXPECT_EQ(word_of_refusal(held, 1'001), "body_too_large");
}

TEST(MemoryLedger, accounts_share_the_limit_of_all) {
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryReservation requests(ledger, MemoryAccount::kRequests), events(ledger, MemoryAccount::kEvents);
  requests.grow(4'000);
  EXPECT_EQ(word_of_refusal(events, 1'001), "memory_full");
  EXPECT_TRUE(events.try_grow(1'000));
}

TEST(MemoryLedger, what_exists_is_counted_beyond_the_limit) {
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryReservation answer(ledger, MemoryAccount::kAnswers), other(ledger, MemoryAccount::kAnswers);
  answer.grow_regardless(9'000);
  EXPECT_EQ(ledger->held_bytes(), 9'000);
  EXPECT_FALSE(other.try_grow(1));
}

TEST(MemoryLedger, one_reservation_at_a_time_goes_beyond_the_limit) {
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryReservation small(ledger, MemoryAccount::kEvents), second(ledger, MemoryAccount::kEvents);
  small.grow(100);
  {
    MemoryReservation first(ledger, MemoryAccount::kEvents);
    EXPECT_TRUE(first.try_grow_beyond(9'000));
    EXPECT_FALSE(second.try_grow_beyond(9'000));
    EXPECT_TRUE(first.try_grow_beyond(1'000)) << "it is the one that may";
    MemoryReservation moved = std::move(first);
    EXPECT_FALSE(second.try_grow_beyond(9'000));
  }
  EXPECT_TRUE(second.try_grow_beyond(9'000));
  second.shrink(9'000);
  EXPECT_EQ(ledger->held_bytes(), 100);
  EXPECT_TRUE(small.try_grow_beyond(9'000));
}

TEST(MemoryLedger, of_many_that_each_hold_a_part_one_waits_for_the_others) {
  const auto ledger = MemoryLedger::create(kLimit);
  constexpr int kThreads = 8;
  std::atomic<int> refused{0}, answered{0};
  std::latch begun(kThreads);
  {
    MemoryReservation first(ledger, MemoryAccount::kRequests);
    ASSERT_TRUE(first.try_grow_beyond(9'000));
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        MemoryReservation mine(ledger, MemoryAccount::kRequests);
        mine.grow_regardless(100);
        begun.arrive_and_wait();
        try {
          mine.grow_beyond(9'000, "the test");
          ++answered;
        } catch (const Error& error) {
          EXPECT_EQ(error.code().word(), "memory_full");
          EXPECT_EQ(error.retry_after_seconds(), 1);
          ++refused;
        }
      });
    }
    while (refused < kThreads - 1) std::this_thread::yield();
    first.shrink(9'000);
  }
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(ledger->held_bytes(), 0);
}

TEST(MemoryLedger, one_reservation_at_a_time_borrows_what_its_account_lacks) {
  const auto ledger = MemoryLedger::create(kLimit);
  std::atomic<int64_t> lent{0};
  ledger->borrow_from({[&](int64_t bytes) {
                         if (lent + bytes > 10'000) return false;
                         lent += bytes;
                         return true;
                       },
                       [&](int64_t bytes) { lent -= bytes; }});
  MemoryReservation first(ledger, MemoryAccount::kRequests), second(ledger, MemoryAccount::kRequests);
  first.grow_beyond(3'000, "the test");
  first.grow_beyond(9'000, "the test");
  EXPECT_EQ(std::pair(first.bytes(), lent.load()), std::pair(int64_t{12'000}, int64_t{9'000}));
  EXPECT_EQ(ledger->held_bytes(), 3'000);
  EXPECT_TRUE(second.try_grow(1'000)) << "what is lent is not in the account";
  EXPECT_THROW(second.grow_beyond(500, "the test"), Error) << "one borrows";
  EXPECT_THROW(first.grow_beyond(2'000, "the test"), Error) << "there is no more";
  MemoryReservation moved = std::move(first);
  moved.shrink(10'000);
  EXPECT_EQ(std::pair(lent.load(), ledger->held_bytes()), std::pair(int64_t{0}, int64_t{3'000}));
  second.grow_beyond(8'000, "the test");
  EXPECT_EQ(lent, 8'000);
  second = {};
  EXPECT_EQ(std::pair(lent.load(), ledger->held_bytes()), std::pair(int64_t{0}, int64_t{2'000}));
}

TEST(MemoryLedger, a_lender_that_fails_lends_to_the_next) {
  const auto ledger = MemoryLedger::create(kLimit);
  bool fails = true;
  ledger->borrow_from({[&](int64_t) -> bool {
                         if (fails) throw std::bad_alloc();
                         return true;
                       },
                       [](int64_t) {}});
  MemoryReservation first(ledger, MemoryAccount::kRequests), second(ledger, MemoryAccount::kRequests);
  EXPECT_THROW(static_cast<void>(first.try_borrow(9'000)), std::bad_alloc);
  fails = false;
  EXPECT_TRUE(second.try_borrow(9'000));
  EXPECT_EQ(first.bytes(), 0);
}

TEST(MemoryLedger, who_waits_for_a_lender_that_fails_leaves_the_place_to_the_next) {
  const auto ledger = MemoryLedger::create(kLimit);
  int asked = 0;
  ledger->borrow_from({[&](int64_t) -> bool {
                         if (++asked == 2) throw std::bad_alloc();
                         return asked == 4;
                       },
                       [](int64_t) {}});
  MemoryReservation first(ledger, MemoryAccount::kRequests), second(ledger, MemoryAccount::kRequests);
  EXPECT_THROW(first.grow_beyond(9'000, "the test"), std::bad_alloc);
  second.grow_beyond(9'000, "the test");  // refused once, and lent to when it waits
  EXPECT_EQ(second.bytes(), 9'000);
}

TEST(MemoryLedger, who_waits_for_the_lender_has_it_as_soon_as_it_lends) {
  const auto ledger = MemoryLedger::create(kLimit);
  std::atomic<bool> lends{false};
  ledger->borrow_from({[&](int64_t) { return lends.load(); }, [](int64_t) {}});
  MemoryReservation waits(ledger, MemoryAccount::kRequests);
  std::jthread later([&] {
    lends = true;
    ledger->notify_waiting();
  });
  waits.grow_beyond(9'000, "the test");
  EXPECT_EQ(waits.bytes(), 9'000);
}

TEST(MemoryLedger, a_waiter_is_notified_once_when_memory_is_given_back) {
  struct CountingWaiter final : Waiter {
    void wait(SteadyTime) override {}
    void notify() override { ++notified; }
    int notified = 0;
  };
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryReservation holder(ledger, MemoryAccount::kAnswers);
  const MemoryReservation wanted(ledger, MemoryAccount::kRequests);
  const auto waiter = std::make_shared<CountingWaiter>();
  holder.grow(100);
  EXPECT_EQ(waiter->notified, 0);
  wanted.notify_when_given(waiter);
  wanted.notify_when_given(waiter);
  holder.shrink(50);
  EXPECT_EQ(waiter->notified, 1) << "of whichever account";
  holder.shrink(25);
  EXPECT_EQ(waiter->notified, 1) << "once for each time that it asks";
  wanted.notify_when_given(waiter);
  ledger->notify_waiting();
  EXPECT_EQ(waiter->notified, 2) << "by the lender";
  wanted.notify_when_given(std::make_shared<CountingWaiter>());
  holder.shrink(25);  // whose waiter is gone by now
}

TEST(MemoryLedger, who_waits_in_vain_is_refused) {
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryReservation first(ledger, MemoryAccount::kRequests), second(ledger, MemoryAccount::kRequests);
  ASSERT_TRUE(first.try_grow_beyond(9'000));
  EXPECT_THROW(second.grow_beyond(9'000, "the test"), Error);
  EXPECT_EQ(second.bytes(), 0);
  EXPECT_EQ(ledger->held_bytes(), 9'000);
}

TEST(MemoryLedger, trim_is_due_after_an_eighth_of_the_limit) {
  const auto ledger = MemoryLedger::create(kLimit);
  MemoryReservation held(ledger, MemoryAccount::kRequests);
  held.grow(624);
  held.shrink(624);
  EXPECT_FALSE(ledger->is_trim_due());
  held.grow(1);
  held.shrink(1);
  EXPECT_TRUE(ledger->is_trim_due());
  EXPECT_FALSE(ledger->is_trim_due());
}

TEST(MemoryLedger, reservation_of_no_ledger_is_never_refused) {
  MemoryReservation free;
  free.grow(INT64_C(1) << 50);
  EXPECT_EQ(free.bytes(), INT64_C(1) << 50);
}

TEST(MemoryLedger, threads_never_hold_more_than_the_limit_together) {
  const auto ledger = MemoryLedger::create(kLimit);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        MemoryReservation held(ledger, MemoryAccount::kPrograms);
        static_cast<void>(held.try_grow(400));
        EXPECT_LE(stats_of(*ledger, MemoryAccount::kPrograms).peak_bytes, 1'000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger->held_bytes(), 0);
}

}  // namespace
}  // namespace meshd::core
