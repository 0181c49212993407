#include "api/app/serving/freed_memory.h"

#include <malloc.h>

#include <algorithm>
#include <thread>

namespace meshd::api {

void return_freed_memory() {
  // Few arenas that keep much hold as little together as many that keep little; and a request with a MiB of values as
  // text, which takes some 4 MiB at once, finds memory that has its pages.
  constexpr unsigned kArenasOfCore = 2;
  constexpr int kKept = 16 << 20;
  constexpr int kApart = 4 << 20;  // larger blocks belong to no arena
  ::mallopt(M_ARENA_MAX, static_cast<int>(kArenasOfCore * std::max(1U, std::thread::hardware_concurrency())));
  ::mallopt(M_TRIM_THRESHOLD, kKept);
  ::mallopt(M_MMAP_THRESHOLD, kApart);
}

}  // namespace meshd::api
