// Preloaded into the real binary (LD_PRELOAD) by allocations_test.py: the Nth allocation from now on fails, once, as on
// a machine without memory. Which one it is the test writes to a file: three int64, see Allocations. What the file says
// is about all threads of the process.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "tests/system/shim_words.h"

extern "C" {
// glibc's own, below the names that this file takes.
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

struct Allocations {
  std::atomic<int64_t> left;    ///< the allocation with which this becomes 0 fails; 0: none
  std::atomic<int64_t> count;   ///< of all allocations
  std::atomic<int64_t> failed;  ///< how many have failed
};

std::atomic<Allocations*> shared{nullptr};

__attribute__((constructor)) void map_words() { shared.store(meshd::tests::map_shim_words<Allocations>()); }

bool fails() {
  Allocations* const all = shared.load(std::memory_order_relaxed);
  if (all == nullptr) return false;
  all->count.fetch_add(1, std::memory_order_relaxed);
  if (all->left.load(std::memory_order_relaxed) <= 0) return false;
  if (all->left.fetch_sub(1) != 1) return false;
  all->failed.fetch_add(1);
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {

void* malloc(size_t size) { return fails() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return fails() ? nullptr : __libc_realloc(old, size); }
void* memalign(size_t alignment, size_t size) { return fails() ? nullptr : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return fails() ? nullptr : __libc_memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  void* const made = fails() ? nullptr : __libc_memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *out = made;
  return 0;
}
}
