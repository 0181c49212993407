// The order of a session's jobs, and who is notified when it changes.
#include "service/sessions/session_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace meshd::sessions {
namespace {

/// Waits until a notification finds that the condition holds; false: none did within a minute. A condition that holds
/// already is waited for, too, so that a notification that nobody sent is missed however the threads run.
template <typename Condition>
bool waits_for(core::Waiter& waiter, const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  do {
    waiter.wait(deadline);
    if (std::chrono::steady_clock::now() >= deadline) return false;
  } while (!condition());
  return true;
}

ArrayUses reads(std::set<std::string> ids) { return {std::move(ids), {}}; }
ArrayUses updates(const std::set<std::string>& ids) { return {ids, ids}; }

TEST(SessionQueue, jobs_read_what_those_before_them_leave) {
  SessionQueue queue;
  queue.enter(1, EffectOrder::kOrdered, updates({"a"}));
  queue.enter(2, EffectOrder::kOrdered, reads({"a"}));
  queue.enter(3, EffectOrder::kOrdered, reads({"b"}));
  EXPECT_TRUE(queue.may_read(1));
  EXPECT_FALSE(queue.may_read(2));
  EXPECT_TRUE(queue.may_read(3));
  queue.leave(1);
  EXPECT_TRUE(queue.may_read(2));
}

TEST(SessionQueue, an_update_waits_for_readers_before_it) {
  SessionQueue queue;
  queue.enter(1, EffectOrder::kNone, reads({"a"}));
  queue.enter(2, EffectOrder::kNone, updates({"a"}));
  EXPECT_TRUE(queue.may_read(2)) << "reading beside a reader is allowed";
  EXPECT_FALSE(queue.may_update(2));
  queue.leave(1);
  EXPECT_TRUE(queue.may_update(2));
}

TEST(SessionQueue, ordered_jobs_have_their_turn_by_number) {
  SessionQueue queue;
  queue.enter(1, EffectOrder::kNone);
  queue.enter(2, EffectOrder::kOrdered);
  queue.enter(3, EffectOrder::kOrdered);
  EXPECT_TRUE(queue.is_next_in_order(2)) << "job 1 is not ordered";
  EXPECT_FALSE(queue.is_next_in_order(3));
  queue.leave(2);
  EXPECT_TRUE(queue.is_next_in_order(3));
}

TEST(SessionQueue, nothing_comes_between_the_effects_of_a_streaming_job) {
  SessionQueue queue;
  queue.enter(1, EffectOrder::kNone);
  queue.enter(2, EffectOrder::kUnordered);
  queue.enter(3, EffectOrder::kStreaming);
  queue.enter(4, EffectOrder::kUnordered);
  queue.enter(5, EffectOrder::kOrdered);
  EXPECT_TRUE(queue.may_log(2)) << "no streaming job is before it";
  EXPECT_FALSE(queue.may_log(3)) << "effects of job 2 would come between";
  EXPECT_FALSE(queue.may_log(4)) << "its effects would come between those of job 3";
  EXPECT_FALSE(queue.may_log(5));
  queue.leave(2);
  EXPECT_TRUE(queue.may_log(3)) << "job 1 has no effects";
  EXPECT_TRUE(queue.is_next_in_order(3));
  EXPECT_FALSE(queue.may_log(4));
  queue.leave(3);
  EXPECT_TRUE(queue.may_log(4));
  EXPECT_TRUE(queue.may_log(5)) << "ordered jobs do not wait for unordered ones";
}

TEST(SessionQueue, held_job_logs_nothing) {
  SessionQueue queue;
  queue.enter(1, EffectOrder::kNone);
  queue.enter(2, EffectOrder::kUnordered);
  queue.enter(3, EffectOrder::kStreaming);
  queue.halt(1);
  EXPECT_FALSE(queue.may_log(2));
  EXPECT_FALSE(queue.may_log(3));
  queue.resume();
  EXPECT_TRUE(queue.may_log(2));
}

TEST(SessionQueue, halted_queue_holds_the_jobs_behind_the_one_that_failed) {
  SessionQueue queue;
  queue.enter(1, EffectOrder::kOrdered);
  queue.enter(2, EffectOrder::kOrdered, updates({"a"}));
  queue.enter(3, EffectOrder::kOrdered);
  queue.halt(2);
  queue.halt(3);  // the first one counts
  queue.leave(2);
  EXPECT_TRUE(queue.is_next_in_order(1)) << "it was there before";
  queue.leave(1);
  EXPECT_TRUE(queue.is_held(3));
  EXPECT_FALSE(queue.is_next_in_order(3));
  EXPECT_FALSE(queue.may_read(3));
  EXPECT_FALSE(queue.may_update(3));
  EXPECT_FALSE(queue.is_dropped(3));
  const auto waiter = std::make_shared<core::ThreadWaiter>();
  queue.watch(waiter);
  std::thread resumes([&] { queue.resume(); });
  EXPECT_TRUE(
      waits_for(*waiter, [&] { return queue.is_next_in_order(3) && queue.may_read(3) && queue.may_update(3); }));
  resumes.join();
  queue.halt(3);
  queue.close();
  EXPECT_TRUE(queue.is_dropped(4));
  EXPECT_FALSE(queue.is_dropped(3));
}

TEST(SessionQueue, nobody_passes_a_job_that_was_put_back) {
  SessionQueue queue;
  queue.enter(1, EffectOrder::kOrdered);
  queue.enter(2, EffectOrder::kOrdered);
  queue.put_back(1);
  EXPECT_FALSE(queue.is_next_in_order(2));
  EXPECT_TRUE(queue.is_behind_put_back(2));
  EXPECT_FALSE(queue.is_behind_put_back(1));
  EXPECT_FALSE(queue.is_over(1));
}

TEST(SessionQueue, whoever_waits_is_notified) {
  SessionQueue queue;
  queue.enter(1, EffectOrder::kNone);
  const int64_t last = queue.last_open();
  ASSERT_EQ(last, 1);
  const auto waiter = std::make_shared<core::ThreadWaiter>();
  queue.watch(waiter);
  std::thread leaves([&] { queue.leave(1); });
  EXPECT_TRUE(waits_for(*waiter, [&] { return queue.is_over(last); }));
  leaves.join();
  EXPECT_EQ(queue.last_open(), 0);
}

TEST(SessionQueue, closing_notifies) {
  SessionQueue queue;
  const auto waiter = std::make_shared<core::ThreadWaiter>();
  queue.watch(waiter);
  std::thread closes([&] { queue.close(); });
  EXPECT_TRUE(waits_for(*waiter, [&] { return queue.is_closing(); }));
  closes.join();
}

TEST(WaiterList, forgets_those_that_are_gone_and_counts_nobody_twice) {
  struct Counted final : core::Waiter {
    void wait(core::SteadyTime) override {}
    void notify() override { ++count; }
    int count = 0;
  };
  core::WaiterList list;
  const auto stays = std::make_shared<Counted>();
  {
    const auto goes = std::make_shared<Counted>();
    list.add(goes);
  }
  list.add(stays);
  list.add(stays);
  list.notify_all();
  EXPECT_EQ(stays->count, 1);
}

TEST(Waiter, abandoning_ends_the_wait) {
  const auto waiter = std::make_shared<core::ThreadWaiter>();
  std::thread leaves([&] { waiter->abandon(); });
  EXPECT_TRUE(waits_for(*waiter, [&] { return waiter->is_abandoned(); }));
  leaves.join();
}

}  // namespace
}  // namespace meshd::sessions
