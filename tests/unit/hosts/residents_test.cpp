// Rank 0's directory of what other ranks keep in memory.
#include "service/hosts/residents.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace meshd::hosts {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

Residents::Shard shard(const std::string& version, int64_t bytes, const std::string& block = "4@0") {
  return {version, block, bytes};
}

TEST(Residents, shard_is_found_by_version_and_block) {
  Residents ranks(3);
  ranks.set_room(1, 8 * kMiB, 100 * kMiB);
  ranks.set_room(2, 8 * kMiB, 100 * kMiB);
  const uint64_t entry = ranks.add(1, shard("arr_a.v1", kMiB));
  ASSERT_NE(entry, 0U);
  EXPECT_EQ(ranks.find(1, shard("arr_a.v1", kMiB)), entry);
  EXPECT_EQ(ranks.find(2, shard("arr_a.v1", kMiB)), 0U) << "another rank has not got it";
  EXPECT_EQ(ranks.find(1, shard("arr_a.v2", kMiB)), 0U);
  EXPECT_EQ(ranks.find(1, shard("arr_a.v1", kMiB, "4@4")), 0U);
  EXPECT_EQ(ranks.add(1, shard("arr_a.v1", kMiB)), 0U) << "it is there";
  EXPECT_EQ(ranks.held(1).bytes, kMiB);
  EXPECT_EQ(ranks.take(1, shard("arr_a.v1", kMiB)), entry);
  EXPECT_EQ(ranks.find(1, shard("arr_a.v1", kMiB)), 0U);
  EXPECT_EQ(ranks.held(1).bytes, 0);
  EXPECT_TRUE(ranks.take_drops(1).empty()) << "a run has it: the rank need not be told";
}

// The example of residents.h.
TEST(Residents, what_was_used_longest_ago_makes_room_for_arrays_and_for_runs) {
  Residents ranks(2);
  ranks.set_room(1, 8 * kMiB, 12 * kMiB);
  const uint64_t a = ranks.add(1, shard("arr_a.v1", 4 * kMiB)), b = ranks.add(1, shard("arr_b.v1", 4 * kMiB));
  ranks.lend(1, 6 * kMiB);
  EXPECT_EQ(ranks.take_drops(1), std::vector{a});
  EXPECT_EQ(ranks.find(1, shard("arr_b.v1", 4 * kMiB)), b);
  ranks.give_back(1, 6 * kMiB);
  const uint64_t again = ranks.add(1, shard("arr_a.v1", 4 * kMiB));
  EXPECT_NE(again, a) << "a number is used once";
  EXPECT_EQ(ranks.find(1, shard("arr_b.v1", 4 * kMiB)), b);
  ranks.add(1, shard("arr_c.v1", 4 * kMiB));
  EXPECT_EQ(ranks.take_drops(1), std::vector{again});
  EXPECT_EQ(ranks.held(1).shards, 2);
  EXPECT_EQ(ranks.add(1, shard("arr_d.v1", 9 * kMiB)), 0U) << "more than all";
  EXPECT_TRUE(ranks.take_drops(1).empty());
}

TEST(Residents, array_with_new_data_goes_in_all_its_versions) {
  Residents ranks(3);
  for (const int rank : {1, 2}) ranks.set_room(rank, 8 * kMiB, 8 * kMiB);
  const uint64_t one = ranks.add(1, shard("arr_a.v9", 8)), two = ranks.add(1, shard("arr_a.v10", 8, "4@4"));
  const uint64_t three = ranks.add(2, shard("arr_a.v9", 8));
  const uint64_t other = ranks.add(1, shard("arr_ab.v1", 8));
  ranks.forget("arr_a");
  auto drops = ranks.take_drops(1);
  std::sort(drops.begin(), drops.end());
  EXPECT_EQ(drops, (std::vector{one, two}));
  EXPECT_EQ(ranks.take_drops(2), std::vector{three});
  EXPECT_EQ(ranks.find(1, shard("arr_ab.v1", 8)), other);
}

TEST(Residents, entry_that_a_rank_has_lost_is_sent_again) {
  Residents ranks(2);
  ranks.set_room(1, kMiB, kMiB);
  const uint64_t entry = ranks.add(1, shard("arr_a.v1", 8));
  ranks.lost(1, entry);
  ranks.lost(1, entry);
  EXPECT_EQ(ranks.find(1, shard("arr_a.v1", 8)), 0U);
  EXPECT_EQ(ranks.held(1).bytes, 0);
  EXPECT_EQ(ranks.take_drops(1), std::vector{entry});
  EXPECT_NE(ranks.add(1, shard("arr_a.v1", 8)), 0U);
}

}  // namespace
}  // namespace meshd::hosts
