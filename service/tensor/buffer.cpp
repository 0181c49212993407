#include "service/tensor/buffer.h"

#include <fmt/core.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <map>
#include <new>
#include <vector>

#include "service/core/checked_math.h"
#include "service/core/error.h"
#include "service/core/locked.h"

namespace meshd::tensor {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

// Cache colouring, as slab allocators do it: huge pages all begin in the same set of each cache, and what runs through
// several buffers side by side would find a few sets for all of them. Each large buffer begins another number of lines
// behind the start of its first huge page.
constexpr int64_t kStagger = 4096 + 256;
constexpr int64_t kStaggers = 16;
bool is_large(int64_t capacity) { return capacity >= kHugePage; }

void free_buffer(std::byte* data, int64_t capacity) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  std::free(is_large(capacity) ? data - address % kHugePage : data);
}

// The next size of the form 2^k * {4,5,6,7}/4, so that at most a fifth of a buffer is waste.
int64_t size_class(int64_t size) {
  if (size <= 256) return 256;
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(size - 1)));
  const int64_t step = int64_t{1} << (bits - 3);
  return core::round_up(size, step);
}

}  // namespace

struct BufferPool::State {
  struct Inner {
    std::map<int64_t, std::vector<std::byte*>> free;
    Stats stats;
  };
  State(int64_t keep, int64_t most) : keep_bytes(keep), most_bytes(most) {}
  [[nodiscard]] int64_t may_keep(const Stats& stats) const {
    return std::min(keep_bytes, most_bytes - stats.in_use_bytes);
  }
  // Frees the largest of what is kept, while that is more than may be. False: it is not.
  bool free_excess() {
    int64_t size = 0;
    std::byte* const data = inner.with([&](Inner& all) -> std::byte* {
      if (all.stats.kept_bytes == 0 || all.stats.kept_bytes <= may_keep(all.stats)) return nullptr;
      while (all.free.rbegin()->second.empty()) all.free.erase(std::prev(all.free.end()));
      auto& [capacity, largest] = *all.free.rbegin();
      std::byte* taken = largest.back();
      largest.pop_back();
      all.stats.kept_bytes -= capacity;
      size = capacity;
      return taken;
    });
    if (data != nullptr) free_buffer(data, size);
    return data != nullptr;
  }

  int64_t next_stagger() {
    return static_cast<int64_t>(staggered.fetch_add(1, std::memory_order_relaxed) % kStaggers) * kStagger;
  }

  const int64_t keep_bytes;
  const int64_t most_bytes;
  std::atomic<uint64_t> staggered = 0;
  core::Locked<Inner> inner;
};

Buffer::Buffer(std::byte* data, int64_t size, int64_t capacity, std::shared_ptr<BufferPool> pool)
    : data_(data), size_(size), capacity_(capacity), pool_(std::move(pool)) {}

Buffer::Buffer(std::shared_ptr<Buffer> whole, int64_t offset, int64_t size)
    : data_(whole->data() + offset), size_(size), capacity_(size), whole_(std::move(whole)) {}

Buffer::~Buffer() {
  if (pool_ != nullptr) pool_->release(data_, capacity_);
}

BufferPool::BufferPool(int64_t keep_bytes, int64_t most_bytes)
    : state_(std::make_unique<State>(keep_bytes, most_bytes)) {}

std::shared_ptr<BufferPool> BufferPool::create(int64_t keep_bytes, int64_t most_bytes) {
  return std::shared_ptr<BufferPool>(new BufferPool(keep_bytes, most_bytes));
}

BufferPool::~BufferPool() {
  state_->inner.with([](State::Inner& inner) {
    for (auto& [capacity, list] : inner.free) {
      for (std::byte* data : list) free_buffer(data, capacity);
    }
  });
}

BufferRef BufferPool::allocate(int64_t size) {
  const int64_t capacity = size_class(size);
  std::byte* data = state_->inner.with([&](State::Inner& inner) -> std::byte* {
    inner.stats.in_use_bytes += capacity;
    const auto found = inner.free.find(capacity);
    if (found == inner.free.end() || found->second.empty()) {
      ++inner.stats.fresh_allocations;
      return nullptr;
    }
    std::byte* recycled = found->second.back();
    found->second.pop_back();
    inner.stats.kept_bytes -= capacity;
    return recycled;
  });
  if (data == nullptr) {
    while (state_->free_excess()) continue;
    const int64_t alignment = is_large(capacity) ? kHugePage : kBufferAlignment;
    const int64_t ahead = is_large(capacity) ? state_->next_stagger() : 0;
    void* fresh = nullptr;
    if (posix_memalign(&fresh, static_cast<size_t>(alignment), static_cast<size_t>(capacity + ahead)) != 0) {
      state_->inner.with([&](State::Inner& inner) { inner.stats.in_use_bytes -= capacity; });
      throw core::Error("memory_exceeded", fmt::format("the server has no memory for {} bytes", size));
    }
    if (is_large(capacity)) madvise(fresh, static_cast<size_t>(capacity), MADV_HUGEPAGE);
    data = static_cast<std::byte*>(fresh) + ahead;
  }
  try {
    return std::make_shared<Buffer>(data, size, capacity, shared_from_this());
  } catch (const std::bad_alloc&) {
    release(data, capacity);
    throw;
  }
}

void BufferPool::release(std::byte* data, int64_t capacity) {
  const bool kept = state_->inner.with([&](State::Inner& inner) {
    inner.stats.in_use_bytes -= capacity;
    if (inner.stats.kept_bytes + capacity > state_->may_keep(inner.stats)) return false;
    try {
      inner.free[capacity].push_back(data);
    } catch (const std::bad_alloc&) {
      return false;  // no memory to remember it: destructors call this
    }
    inner.stats.kept_bytes += capacity;
    return true;
  });
  if (!kept) free_buffer(data, capacity);
}

BufferPool::Stats BufferPool::stats() const {
  return state_->inner.with([](const State::Inner& inner) { return inner.stats; });
}

}  // namespace meshd::tensor
