// Which requests of a model run together, and when. Times are the test's own.
#include "service/models/batch_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace meshd::models {
namespace {

using Queue = BatchQueue<std::string>;
using Names = std::vector<std::string>;
using std::chrono::microseconds;

const core::SteadyTime kStart = core::SteadyTime(std::chrono::hours(1));

core::SteadyTime at(int64_t us) { return kStart + microseconds(us); }

struct Asked {
  std::string handle;
  int64_t rows = 1;
  std::string principal = "ann";
  int64_t priority = 2;
  int64_t arrived_us = 0;
  std::string shape = "";
};

void push(Queue& queue, const Asked& asked) {
  queue.push({asked.handle, asked.principal, asked.shape, asked.rows, asked.priority, at(asked.arrived_us)});
}

Names take(Queue& queue, int64_t us) {
  auto decision = queue.take(at(us));
  return decision.batch ? decision.batch->handles : Names{};
}

TEST(BatchQueue, without_a_delay_what_waits_runs_at_once) {
  Queue queue({.most_rows = 8});
  EXPECT_FALSE(queue.take(at(0)).batch);
  EXPECT_FALSE(queue.take(at(0)).look_again);
  for (const char* name : {"a", "b", "c"}) push(queue, {name, 2});
  const auto decision = queue.take(at(0));
  ASSERT_TRUE(decision.batch);
  EXPECT_EQ(decision.batch->handles, (Names{"a", "b", "c"}));
  EXPECT_EQ(decision.batch->rows, 6);
  EXPECT_EQ(queue.size(), 0);
}

TEST(BatchQueue, a_batch_waits_for_others_until_the_delay_of_its_oldest_is_over) {
  Queue queue({8, {}, microseconds(500)});
  push(queue, {.handle = "a", .arrived_us = 0});
  push(queue, {.handle = "b", .arrived_us = 300});
  const auto waits = queue.take(at(499));
  EXPECT_FALSE(waits.batch);
  EXPECT_EQ(waits.look_again, at(500));
  EXPECT_EQ(take(queue, 500), (Names{"a", "b"}));
}

TEST(BatchQueue, a_full_batch_does_not_wait) {
  Queue queue({4, {}, microseconds(500)});
  push(queue, {"a", 2});
  push(queue, {"b", 2});
  EXPECT_EQ(take(queue, 0), (Names{"a", "b"}));
  push(queue, {"c", 3});
  push(queue, {"d", 2});  // does not fit: waiting longer makes the batch no larger
  EXPECT_EQ(take(queue, 0), Names{"c"});
  EXPECT_FALSE(queue.take(at(0)).batch);
  EXPECT_EQ(take(queue, 500), Names{"d"});
}

TEST(BatchQueue, the_largest_preferred_size_runs_at_once) {
  Queue queue({16, {4, 6}, microseconds(500)});
  for (const char* name : {"a", "b", "c"}) push(queue, {name});
  EXPECT_FALSE(queue.take(at(0)).batch);
  push(queue, {"d"});
  EXPECT_EQ(take(queue, 0).size(), 4U);
  for (int i = 0; i < 7; ++i) push(queue, {std::to_string(i)});
  EXPECT_EQ(take(queue, 0), (Names{"0", "1", "2", "3", "4", "5"}));
  EXPECT_FALSE(queue.take(at(0)).batch);
  EXPECT_EQ(take(queue, 500), Names{"6"});
}

TEST(BatchQueue, principals_take_turns_and_a_flood_of_one_delays_others_by_a_batch) {
  Queue queue({.most_rows = 4});
  for (int i = 0; i < 100; ++i) push(queue, {.handle = "flood", .principal = "flood"});
  EXPECT_EQ(take(queue, 0).size(), 4U);
  push(queue, {.handle = "b1", .principal = "bob"});
  push(queue, {.handle = "b2", .principal = "bob"});
  push(queue, {.handle = "c1", .principal = "cid"});
  EXPECT_EQ(take(queue, 0).size(), 4U) << "it was there before them";
  EXPECT_EQ(take(queue, 0), (Names{"b1", "b2"}));
  EXPECT_EQ(take(queue, 0), Names{"c1"});
  EXPECT_EQ(take(queue, 0).size(), 4U);
}

// A program may mix the rows of a batch, so that one would read the rows of others.
TEST(BatchQueue, no_batch_has_rows_of_two_principals) {
  Queue queue({8, {2}, microseconds(500)});
  push(queue, {.handle = "a", .principal = "ann"});
  push(queue, {.handle = "b", .principal = "bob", .arrived_us = 100});
  const auto waits = queue.take(at(200));
  EXPECT_FALSE(waits.batch) << "two rows, but of two principals";
  EXPECT_EQ(waits.look_again, at(500));
  push(queue, {.handle = "b2", .principal = "bob", .arrived_us = 250});
  EXPECT_EQ(take(queue, 300), (Names{"b", "b2"})) << "who has a preferred size does not wait for who has none";
  EXPECT_EQ(take(queue, 500), Names{"a"});
}

TEST(BatchQueue, a_level_counts_among_the_requests_of_its_principal) {
  Queue queue({.most_rows = 1});
  push(queue, {.handle = "a", .principal = "ann", .priority = 3});
  push(queue, {.handle = "b", .principal = "bob", .priority = 1});
  push(queue, {.handle = "b2", .principal = "bob", .priority = 1});
  EXPECT_EQ(take(queue, 0), Names{"a"});
  EXPECT_EQ(take(queue, 0), Names{"b"});
}

TEST(BatchQueue, a_lower_level_is_served_when_the_one_above_is_empty) {
  Queue queue({.most_rows = 2});
  push(queue, {.handle = "late", .priority = 3});
  push(queue, {.handle = "usual", .priority = 2});
  push(queue, {.handle = "first", .priority = 1});
  EXPECT_EQ(take(queue, 0), (Names{"first", "usual"}));
  EXPECT_EQ(take(queue, 0), Names{"late"});
}

TEST(BatchQueue, requests_of_other_shapes_run_by_themselves) {
  Queue queue({.most_rows = 8});
  push(queue, {.handle = "a", .shape = "3"});
  push(queue, {.handle = "b", .shape = "4"});
  push(queue, {.handle = "c", .principal = "bob", .shape = "3"});
  EXPECT_EQ(take(queue, 0), Names{"a"});
  EXPECT_EQ(take(queue, 0), Names{"c"});
  EXPECT_EQ(take(queue, 0), Names{"b"});
}

TEST(BatchQueue, requests_are_removed_and_counted_by_principal) {
  Queue queue({.most_rows = 8});
  push(queue, {"a"});
  push(queue, {"b"});
  push(queue, {.handle = "c", .principal = "bob"});
  EXPECT_EQ(queue.size_of("ann"), 2);
  EXPECT_TRUE(queue.remove("a"));
  EXPECT_FALSE(queue.remove("a"));
  EXPECT_EQ(queue.size_of("ann"), 1);
  EXPECT_TRUE(queue.remove("c"));
  EXPECT_EQ(queue.size_of("bob"), 0);
  EXPECT_EQ(take(queue, 0), Names{"b"});
  EXPECT_EQ(queue.size(), 0);
}

// Whatever comes: no request is lost or run twice, no batch is too large or of two shapes or principals, each
// principal's requests of a shape and level keep their order, and the queue ends.
TEST(BatchQueue, of_any_requests_each_runs_once_in_order) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&](int64_t high) { return static_cast<int64_t>(random() % static_cast<uint64_t>(high)); };
    const int64_t most = 1 + any(8);
    Queue queue({most, {1 + any(most)}, microseconds(any(3) * 100)});
    std::map<std::string, Asked> asked;
    std::map<std::string, int64_t> last;  // by principal, level and shape: number of the last that ran
    int64_t now = 0, made = 0, ran = 0;
    while (ran < 60) {
      now += any(60);
      if (made < 60 && any(3) > 0) {
        Asked one{std::to_string(made++), 1 + any(most), "p" + std::to_string(any(3)), 1 + any(2), now,
                  std::to_string(any(2))};
        asked[one.handle] = one;
        push(queue, one);
        continue;
      }
      const auto decision = queue.take(at(now));
      if (!decision.batch) {
        if (decision.look_again) {
          EXPECT_GT(*decision.look_again, at(now));
        }
        continue;
      }
      int64_t rows = 0;
      std::set<std::string> shapes, principals;
      for (const std::string& handle : decision.batch->handles) {
        ASSERT_EQ(asked.count(handle), 1U) << "ran twice, seed " << seed;
        const Asked one = asked[handle];
        asked.erase(handle);
        rows += one.rows;
        shapes.insert(one.shape);
        principals.insert(one.principal);
        int64_t& before = last[one.principal + "/" + std::to_string(one.priority) + "/" + one.shape];
        EXPECT_GE(std::stoll(handle) + 1, before) << "out of order, seed " << seed;
        before = std::stoll(handle) + 1;
        ++ran;
      }
      EXPECT_EQ(rows, decision.batch->rows);
      EXPECT_LE(rows, most);
      EXPECT_EQ(shapes.size(), 1U);
      EXPECT_EQ(principals.size(), 1U);
    }
    EXPECT_EQ(queue.size(), 0);
  }
}

}  // namespace
}  // namespace meshd::models
