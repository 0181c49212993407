// The pool of buffers: what it keeps of released memory.
#include "service/tensor/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace meshd::tensor {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(BufferPool, released_memory_is_used_again) {
  const auto pool = BufferPool::create(8 * kMiB);
  const std::byte* const first = pool->allocate(3 * kMiB)->data();
  EXPECT_EQ(pool->stats().kept_bytes, 3 * kMiB);
  EXPECT_EQ(pool->allocate(3 * kMiB)->data(), first);
  EXPECT_EQ(pool->stats().fresh_allocations, 1);
  EXPECT_EQ(pool->stats().in_use_bytes, 0);
}

TEST(BufferPool, large_buffers_begin_in_different_sets_of_the_caches) {
  const auto pool = BufferPool::create(0);
  std::vector<BufferRef> buffers;
  std::set<uintptr_t> places;
  for (int i = 0; i < 16; ++i) {
    buffers.push_back(pool->allocate(int64_t{4} << 20));
    const auto address = reinterpret_cast<uintptr_t>(buffers.back()->data());
    EXPECT_EQ(address % kBufferAlignment, 0U);
    places.insert(address % 4096);
    std::memset(buffers.back()->data(), i, static_cast<size_t>(buffers.back()->size()));
  }
  EXPECT_EQ(places.size(), 16U);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(buffers[static_cast<size_t>(i)]->bytes().front(), std::byte(i));
    EXPECT_EQ(buffers[static_cast<size_t>(i)]->bytes().back(), std::byte(i));
  }
}

TEST(BufferPool, keeps_no_more_than_it_may) {
  const auto pool = BufferPool::create(4 * kMiB);
  { const BufferRef a = pool->allocate(3 * kMiB), b = pool->allocate(2 * kMiB), c = pool->allocate(kMiB); }
  EXPECT_LE(pool->stats().kept_bytes, 4 * kMiB);
  EXPECT_GE(pool->stats().kept_bytes, 3 * kMiB);
}

TEST(BufferPool, released_memory_leaves_before_more_is_in_use_than_there_may_be) {
  const auto pool = BufferPool::create(8 * kMiB, 10 * kMiB);
  { const BufferRef large = pool->allocate(4 * kMiB), small = pool->allocate(kMiB); }
  EXPECT_EQ(pool->stats().kept_bytes, 5 * kMiB);
  BufferRef used = pool->allocate(8 * kMiB);
  EXPECT_EQ(pool->stats().kept_bytes, kMiB) << "the largest leaves first";
  const BufferRef more = pool->allocate(3 * kMiB);  // who admits runs sees to it that there is room
  EXPECT_EQ(pool->stats().kept_bytes, 0);
  used = nullptr;
  EXPECT_EQ(pool->stats().kept_bytes, 0) << "8 MiB are more than 10 less 3";
  EXPECT_EQ(pool->stats().in_use_bytes, 3 * kMiB);
}

}  // namespace
}  // namespace meshd::tensor
