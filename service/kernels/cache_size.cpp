#include "service/kernels/cache_size.h"

#include <unistd.h>

#include <algorithm>

namespace meshd::kernels {

int64_t streaming_bytes() {
  static const int64_t bytes = [] {
    constexpr int64_t kMost = 32 << 20;
    const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const int64_t cache = std::min<int64_t>(l3 > 0 ? l3 : l2 > 0 ? l2 : kMost, kMost);
    // An output just as large as the cache still gains from it: what is read next is partly there.
    return cache + cache / 2;
  }();
  return bytes;
}

int64_t second_level_bytes() {
  static const int64_t bytes = [] {
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return l2 > 0 ? static_cast<int64_t>(l2) : int64_t{512} << 10;
  }();
  return bytes;
}

}  // namespace meshd::kernels
