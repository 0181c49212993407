// Which job starts next, and how many may wait.
#include "service/jobs/queue/fair_queue.h"

#include <gtest/gtest.h>

#include "service/jobs/queue/queue_places.h"

namespace meshd::jobs {
namespace {

using Queue = FairQueue<std::string>;

const auto kAnyone = [](const std::string&) { return true; };
const auto kReady = [](const std::string&, bool) { return true; };

std::vector<std::string> take_all(Queue& queue) {
  std::vector<std::string> out;
  while (auto job = queue.take(kAnyone, kReady)) out.push_back(*job);
  return out;
}

using Names = std::vector<std::string>;

TEST(FairQueue, principals_take_turns_then_sessions_then_numbers) {
  Queue queue;
  queue.push("p", "s", 1, "p/s/1");
  queue.push("p", "s", 2, "p/s/2");
  queue.push("p", "t", 1, "p/t/1");
  queue.push("q", "", 0, "q");
  EXPECT_EQ(take_all(queue), (Names{"p/s/1", "q", "p/t/1", "p/s/2"}));
  EXPECT_EQ(queue.size(), 0);
}

TEST(FairQueue, a_flood_of_sessions_delays_others_by_one_job) {
  Queue queue;
  for (int session = 0; session < 20; ++session) {
    for (int number = 1; number <= 10; ++number) queue.push("flood", std::to_string(session), number, "flood");
  }
  EXPECT_EQ(queue.take(kAnyone, kReady), "flood");
  queue.push("small", "s", 1, "small");
  const Names order = take_all(queue);
  EXPECT_EQ(order[0], "flood");
  EXPECT_EQ(order[1], "small");
  EXPECT_EQ(order.size(), 200U);
}

TEST(FairQueue, numbers_decide_whatever_order_jobs_came_in) {
  Queue queue;
  queue.push("p", "s", 3, "3");
  queue.push("p", "s", 1, "1");
  queue.push("p", "s", 2, "2");
  EXPECT_EQ(take_all(queue), (Names{"1", "2", "3"}));
}

TEST(FairQueue, jobs_without_a_session_start_as_they_came) {
  Queue queue;
  for (const char* job : {"a", "b", "c"}) queue.push("p", "", 0, job);
  EXPECT_EQ(take_all(queue), (Names{"a", "b", "c"}));
}

TEST(FairQueue, who_may_not_start_is_passed) {
  Queue queue;
  queue.push("p", "s", 1, "p");
  queue.push("q", "t", 1, "q");
  EXPECT_EQ(queue.take([](const std::string& principal) { return principal == "q"; }, kReady), "q");
  EXPECT_EQ(queue.take([](const std::string& principal) { return principal == "q"; }, kReady), std::nullopt);
  EXPECT_EQ(queue.size(), 1);
}

TEST(FairQueue, who_is_not_ready_is_passed_and_stays_first) {
  Queue queue;
  for (int number = 1; number <= 3; ++number) queue.push("p", "s", number, std::to_string(number));
  std::vector<bool> firsts;
  const auto second = [&](const std::string& job, bool is_first) {
    firsts.push_back(is_first);
    return job == "2";
  };
  EXPECT_EQ(queue.take(kAnyone, second), "2");
  EXPECT_EQ(firsts, (std::vector<bool>{true, false}));
  EXPECT_EQ(take_all(queue), (Names{"1", "3"}));
}

TEST(FairQueue, a_job_is_removed_once) {
  Queue queue;
  queue.push("p", "s", 1, "a");
  queue.push("p", "s", 1, "b");
  EXPECT_TRUE(queue.remove("p", "s", 1, "b"));
  EXPECT_FALSE(queue.remove("p", "s", 1, "b"));
  EXPECT_FALSE(queue.remove("q", "s", 1, "a"));
  EXPECT_TRUE(queue.remove("p", "s", 1, "a"));
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(queue.take(kAnyone, kReady), std::nullopt);
}

std::string refusal(QueuePlaces& places, const std::string& principal, const std::string& session) {
  try {
    places.take(principal, session);
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ErrorCode("queue_full"));
    return error.detail();
  }
  return "";
}

TEST(QueuePlaces, nobody_takes_the_whole_queue) {
  QueuePlaces places({.all = 5, .principal = 3, .session = 2});
  places.take("p", "s");
  places.take("p", "s");
  EXPECT_NE(refusal(places, "p", "s").find("at most 2"), std::string::npos);
  places.take("p", "t");
  EXPECT_NE(refusal(places, "p", "").find("at most 3"), std::string::npos);
  EXPECT_EQ(places.left("p"), 0);
  EXPECT_EQ(places.left("q"), 2);
  places.take("q", "");
  places.take("q", "");
  EXPECT_NE(refusal(places, "r", "").find("at most 5"), std::string::npos);
  places.give_back("p", "s");
  EXPECT_EQ(refusal(places, "p", "s"), "");
}

}  // namespace
}  // namespace meshd::jobs
