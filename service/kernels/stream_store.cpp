#include "service/kernels/stream_store.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "service/kernels/cpu.h"

namespace meshd::kernels {
namespace {

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void stream_lines_v4(std::byte* to, const std::byte* from, int64_t lines) {
  for (int64_t i = 0; i < lines; ++i) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i * kLineBytes), _mm512_loadu_si512(from + i * kLineBytes));
  }
}

void stream_lines_base(std::byte* to, const std::byte* from, int64_t lines) {
  constexpr int64_t kVectorBytes = 16;
  for (int64_t i = 0; i < lines * kLineBytes; i += kVectorBytes) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
}
#endif

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, int64_t bytes) {
#if defined(__x86_64__)
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLineBytes);
  const int64_t head = std::min(bytes, (kLineBytes - misaligned) % kLineBytes);
  std::memcpy(to, from, static_cast<size_t>(head));
  const int64_t lines = (bytes - head) / kLineBytes;
  if (cpu_level() == CpuLevel::kV4)
    stream_lines_v4(to + head, from + head, lines);
  else
    stream_lines_base(to + head, from + head, lines);
  const int64_t done = head + lines * kLineBytes;
  std::memcpy(to + done, from + done, static_cast<size_t>(bytes - done));
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace meshd::kernels
