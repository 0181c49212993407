#include "api/app/serving/freed_memory.h"

#include <malloc.h>

#include <algorithm>
#include <thread>

namespace meshd::api {

void return_freed_memory() {
  // A request with a MiB of values as text takes some 4 MiB at once: where an arena keeps more than that, it finds
  // memory that has its pages. On few cores there are few arenas; on many each keeps less.
  constexpr int kArenasOfCore = 2;
  constexpr int kMostKept = 16 << 20, kLeastKept = 4 << 20, kKeptByAll = 128 << 20;
  constexpr int kApart = 4 << 20;  // larger blocks belong to no arena
  const int arenas = kArenasOfCore * static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  ::mallopt(M_ARENA_MAX, arenas);
  ::mallopt(M_TRIM_THRESHOLD, std::clamp(kKeptByAll / arenas, kLeastKept, kMostKept));
  ::mallopt(M_MMAP_THRESHOLD, kApart);
}

}  // namespace meshd::api
