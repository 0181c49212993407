#include "service/core/lru_cache.h"

#include <gtest/gtest.h>

namespace meshd::core {
namespace {

TEST(LruCache, evicts_what_was_used_longest_ago) {
  LruCache<int> cache(2);
  cache.insert("a", 1);
  cache.insert("b", 2);
  ASSERT_NE(cache.find("a"), nullptr);
  cache.insert("c", 3);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_EQ(*cache.find("a"), 1);
  EXPECT_EQ(*cache.find("c"), 3);
  EXPECT_EQ(cache.size(), 2U);
}

TEST(LruCache, keeps_the_first_value_of_a_key) {
  LruCache<int> cache(2);
  EXPECT_EQ(cache.insert("a", 1), 1);
  EXPECT_EQ(cache.insert("a", 2), 1);
  EXPECT_EQ(cache.size(), 1U);
}

TEST(LruCache, of_no_entries_keeps_one) {
  LruCache<int> cache(0);
  cache.insert("a", 1);
  cache.insert("b", 2);
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_EQ(*cache.find("b"), 2);
}

TEST(LruCache, evicts_until_the_bytes_fit) {
  LruCache<int> cache(10, 100);
  cache.insert("a", 1, 60);
  cache.insert("b", 2, 30);
  cache.insert("c", 3, 40);
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_EQ(cache.bytes(), 70);
  cache.insert("b", 9, 1'000);
  EXPECT_EQ(cache.bytes(), 70) << "what is known is not counted again";
  EXPECT_EQ(cache.insert("d", 4, 101), 4);
  EXPECT_EQ(cache.find("d"), nullptr) << "what does not fit is used and not kept";
  EXPECT_EQ(cache.bytes(), 70);
  cache.insert("e", 5, 100);
  EXPECT_EQ(cache.size(), 1U);
}

TEST(LruCache, erased_entry_is_gone_with_its_bytes) {
  LruCache<int> cache(4, 100);
  cache.insert("a", 1, 60);
  cache.insert("b", 2, 30);
  cache.erase("a");
  cache.erase("a");
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_EQ(cache.bytes(), 30);
  cache.insert("c", 3, 70);
  EXPECT_NE(cache.find("b"), nullptr);
  EXPECT_EQ(cache.size(), 2U);
}

TEST(LruCache, replaced_value_takes_the_place_of_the_old_one) {
  LruCache<int> cache(2, 100);
  cache.insert("a", 1, 60);
  EXPECT_EQ(cache.replace("a", 2, 70), 2);
  EXPECT_EQ(cache.replace("b", 3, 30), 3);
  EXPECT_EQ(*cache.find("a"), 2);
  EXPECT_EQ(cache.bytes(), 100);
}

TEST(LruCache, survives_a_move) {
  LruCache<int> from(2);
  from.insert("a", 1);
  LruCache<int> cache = std::move(from);
  cache.insert("b", 2);
  EXPECT_EQ(*cache.find("a"), 1);
  cache.insert("c", 3);
  EXPECT_EQ(cache.find("b"), nullptr);
}

}  // namespace
}  // namespace meshd::core
