#include "service/kernels/elementwise/lanes/lane_loop.h"

#include <array>
#include <cstring>

#include "service/kernels/element_width.h"

namespace meshd::kernels {
namespace {

/// Elements may be wider than what their memory is aligned to: a pair of floats is moved as one element of eight bytes.
template <class T>
[[gnu::always_inline]] inline void repeat(const ElementRuns& runs, std::byte* to) {
  using Loose [[gnu::aligned(1)]] = T;
  Loose* lanes = reinterpret_cast<Loose*>(to);
  for (int64_t run = 0; run < runs.runs; ++run, lanes += runs.count) {
    const T value = *reinterpret_cast<const Loose*>(runs.elements + run * runs.stride_bytes);
    for (int64_t i = 0; i < runs.count; ++i) lanes[i] = value;
  }
}

template <class T>
void repeat_base(const ElementRuns& runs, std::byte* to) {
  repeat<T>(runs, to);
}
#if defined(__x86_64__)
template <class T>
[[gnu::target("arch=x86-64-v3")]] void repeat_v3(const ElementRuns& runs, std::byte* to) {
  repeat<T>(runs, to);
}
template <class T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void repeat_v4(const ElementRuns& runs, std::byte* to) {
  repeat<T>(runs, to);
}
#endif

/// Lanes from which on wider stores are worth a look at the processor's level.
constexpr int64_t kLongRun = 32;

template <class T>
void repeat_by_level(const ElementRuns& runs, std::byte* to) {
#if defined(__x86_64__)
  if (runs.count * runs.runs >= kLongRun) {
    if (cpu_level() == CpuLevel::kV4) return repeat_v4<T>(runs, to);
    if (cpu_level() == CpuLevel::kV3) return repeat_v3<T>(runs, to);
  }
#endif
  repeat_base<T>(runs, to);
}

}  // namespace

void repeat_elements(const ElementRuns& runs, int64_t element_bytes, std::byte* to) {
  with_element(element_bytes, [&](auto sample) { repeat_by_level<decltype(sample)>(runs, to); });
}

void repeat_element(const std::byte* element, int64_t element_bytes, std::byte* to, int64_t count) {
  repeat_elements({.elements = element, .stride_bytes = 0, .runs = 1, .count = count}, element_bytes, to);
}

void run_padded_block(ScalarKernel kernel, std::initializer_list<size_t> operand_bytes, size_t result_bytes,
                      const std::byte* const* operands, std::byte* result, int64_t begin, int64_t rest) {
  constexpr size_t kMaxElementBytes = 16;
  constexpr size_t kBlockBytes = static_cast<size_t>(kBlockLanes) * kMaxElementBytes;
  alignas(64) std::array<std::byte, 4 * kBlockBytes> memory;
  std::array<const std::byte*, 3> padded{};
  size_t operand = 0;
  for (const size_t bytes : operand_bytes) {
    std::byte* const lanes = memory.data() + operand * kBlockBytes;
    const size_t used = static_cast<size_t>(rest) * bytes;
    std::memcpy(lanes, operands[operand] + static_cast<size_t>(begin) * bytes, used);
    repeat_element(lanes + used - bytes, static_cast<int64_t>(bytes), lanes + used, kBlockLanes - rest);
    padded[operand++] = lanes;
  }
  std::byte* const results = memory.data() + 3 * kBlockBytes;
  kernel(padded.data(), results, kBlockLanes);
  std::memcpy(result + static_cast<size_t>(begin) * result_bytes, results, static_cast<size_t>(rest) * result_bytes);
}

}  // namespace meshd::kernels
