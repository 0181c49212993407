#include "tests/fuzz/coverage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace {

// Passes of each edge since the input began. Edges share a place where their hashes are the same, as in AFL.
std::array<uint8_t, size_t{1} << 16> passed;
thread_local uintptr_t before = 0;

}  // namespace

// Called by g++'s instrumentation at each block of code. The place of the code within the binary counts, which is the
// same in each run.
extern "C" void __sanitizer_cov_trace_pc();
extern "C" const char __executable_start;
void __sanitizer_cov_trace_pc() {
  const auto place =
      reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - reinterpret_cast<uintptr_t>(&__executable_start);
  const uintptr_t mixed = (place * 0x9E3779B97F4A7C15ULL) >> 48U;
  uint8_t& count = passed[mixed ^ before];
  if (count < UINT8_MAX) ++count;
  before = mixed >> 1U;
}

namespace meshd::fuzz {

void Coverage::begin() {
  passed.fill(0);
  before = 0;
}

bool Coverage::has_new() {
  bool found = false;
  for (size_t edge = 0; edge < passed.size(); ++edge) {
    if (passed[edge] == 0) continue;
    const size_t at = edge * kClasses + static_cast<size_t>(std::bit_width(passed[edge])) - 1;
    found |= !seen_[at];
    seen_.set(at);
  }
  return found;
}

}  // namespace meshd::fuzz
