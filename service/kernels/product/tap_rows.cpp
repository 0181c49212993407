#include "service/kernels/product/tap_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "service/kernels/cpu.h"

namespace meshd::kernels {
namespace {

/// A vector as the processor has it: the compiler keeps wider ones in memory.
template <class T, int kVectorBytes>
struct Lanes {
  using Vector [[gnu::vector_size(kVectorBytes)]] = T;
  static constexpr int64_t kCount = kVectorBytes / static_cast<int64_t>(sizeof(T));
};

/// Floats: so many products are added one to the other, and their sum to the sums before. (One chain of a hundred taps
/// loses twice the digits.) Integers are exact.
constexpr int64_t kPartTaps = 8;

/// Results that are kept in registers: some vectors, so that one sum need not wait for the other.
template <class T, int kVectorBytes, int kVectors, bool kInParts>
[[gnu::always_inline]] inline void sum_block(const TapRows& rows, int64_t first, std::byte* result) {
  using Vector = typename Lanes<T, kVectorBytes>::Vector;
  constexpr int64_t kCount = Lanes<T, kVectorBytes>::kCount;
  constexpr int64_t kPart = kInParts ? kPartTaps : std::numeric_limits<int64_t>::max();
  Vector sums[kVectors] = {};
  Vector before[kVectors] = {};
  int64_t left = kPart;  // taps of this part, which may be those of several rows
  for (int64_t r = 0; r < rows.row_count; ++r) {
    const T* const elements = reinterpret_cast<const T*>(rows.rows[r].elements) + first;
    const T* const taps = reinterpret_cast<const T*>(rows.rows[r].taps);
    for (int64_t k = 0; k < rows.taps;) {
      const int64_t stop = k + std::min(left, rows.taps - k);
      left -= stop - k;
      for (; k < stop; ++k) {
        const T tap = taps[k];
        const T* const from = elements + k * rows.step;
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          Vector lanes;
          std::memcpy(&lanes, from + v * kCount, sizeof(lanes));
          sums[v] += lanes * tap;
        }
      }
      if (left > 0) continue;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        before[v] += sums[v];
        sums[v] = Vector{};
      }
      left = kPart;
    }
  }
  if constexpr (kInParts) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[v] += before[v];
  }
  std::memcpy(result + first * static_cast<int64_t>(sizeof(T)), sums, sizeof(sums));
}

/// The last block begins earlier where it would pass over the end: its results are made twice.
template <class T, int kVectorBytes, int kVectors, bool kInParts>
[[gnu::always_inline]] inline void sum_blocks(const TapRows& rows, std::byte* result, int64_t count) {
  constexpr int64_t kOne = Lanes<T, kVectorBytes>::kCount;
  constexpr int64_t kBlock = kVectors * kOne;
  static_assert(kOne <= kLeastTapResults);
  int64_t at = 0;
  for (; at + kBlock <= count; at += kBlock) sum_block<T, kVectorBytes, kVectors, kInParts>(rows, at, result);
  if (at < count && count >= kBlock)
    return sum_block<T, kVectorBytes, kVectors, kInParts>(rows, count - kBlock, result);
  for (; at < count; at += kOne) sum_block<T, kVectorBytes, 1, kInParts>(rows, std::min(at, count - kOne), result);
}

template <class T, int kVectorBytes, int kVectors>
[[gnu::always_inline]] inline void sum_rows(const TapRows& rows, std::byte* result, int64_t count) {
  if (std::is_floating_point_v<T> && rows.row_count * rows.taps > kPartTaps)
    return sum_blocks<T, kVectorBytes, kVectors, true>(rows, result, count);
  sum_blocks<T, kVectorBytes, kVectors, false>(rows, result, count);
}

template <class T>
void sum_rows_base(const TapRows& rows, std::byte* result, int64_t count) {
  sum_rows<T, 16, 4>(rows, result, count);
}
#if defined(__x86_64__)
template <class T>
[[gnu::target("arch=x86-64-v3")]] void sum_rows_v3(const TapRows& rows, std::byte* result, int64_t count) {
  sum_rows<T, 32, 8>(rows, result, count);
}
template <class T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void sum_rows_v4(const TapRows& rows, std::byte* result,
                                                                           int64_t count) {
  sum_rows<T, 64, 4>(rows, result, count);
}
#endif

template <class T>
SumTapRows by_level() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return sum_rows_v4<T>;
  if (cpu_level() == CpuLevel::kV3) return sum_rows_v3<T>;
#endif
  return sum_rows_base<T>;
}

}  // namespace

SumTapRows sum_tap_rows_f32() { return by_level<float>(); }
SumTapRows sum_tap_rows_f64() { return by_level<double>(); }
SumTapRows sum_tap_rows_i32() { return by_level<uint32_t>(); }
SumTapRows sum_tap_rows_i64() { return by_level<uint64_t>(); }

}  // namespace meshd::kernels
