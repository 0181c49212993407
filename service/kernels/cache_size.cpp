#include "service/kernels/cache_size.h"

#include <unistd.h>

#include <algorithm>

namespace meshd::kernels {

int64_t streaming_bytes() {
  static const int64_t bytes = [] {
    constexpr int64_t kMost = 32 << 20;
    const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (l3 > 0) return std::min<int64_t>(l3, kMost);
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return l2 > 0 ? std::min<int64_t>(l2, kMost) : kMost;
  }();
  return bytes;
}

}  // namespace meshd::kernels
