#include "service/kernels/elementwise/lanes/repeat_elements.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "service/core/checked_math.h"
#include "service/kernels/cpu.h"
#include "service/kernels/element_width.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"

namespace meshd::kernels {
namespace {

template <class T>
T element_at(const std::byte* from) {
  T element;
  std::memcpy(&element, from, sizeof(element));
  return element;
}

/// Elements may be wider than what their memory is aligned to: a pair of floats is moved as one element of eight bytes.
template <class T>
[[gnu::always_inline]] inline void repeat(const ElementRuns& runs, std::byte* to) {
  using Loose [[gnu::aligned(1)]] = T;
  Loose* lanes = reinterpret_cast<Loose*>(to);
  for (int64_t run = 0; run < runs.runs; ++run, lanes += runs.count) {
    const T value = element_at<T>(runs.elements + run * runs.stride_bytes);
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

/// Of one vector, which short runs are written in.
constexpr int64_t kPieceBytes = 16;
/// Runs from so many elements on have loops of their own.
constexpr int64_t kFewRuns = 4;

/// Elements side by side, each kRepeat times, of which as many as a vector has become kRepeat vectors: lane j of vector
/// k is element (k * lanes + j) / kRepeat. How many they were.
template <class T, int kRepeat>
int64_t repeat_few(const std::byte* elements, int64_t runs, std::byte* to) {
  using Vector [[gnu::vector_size(kPieceBytes)]] = T;
  constexpr int kLanes = kPieceBytes / sizeof(T);
  const auto shuffled = [&]<int... kLane>(const Vector& from, int k, std::integer_sequence<int, kLane...>) {
    return __builtin_shuffle(from, Vector{static_cast<T>((k * kLanes + kLane) / kRepeat)...});
  };
  int64_t run = 0;
  for (; run + kLanes <= runs; run += kLanes) {
    const auto from = element_at<Vector>(elements + run * static_cast<int64_t>(sizeof(T)));
#pragma GCC unroll 4
    for (int k = 0; k < kRepeat; ++k) {
      const Vector lanes = shuffled(from, k, std::make_integer_sequence<int, kLanes>());
      std::memcpy(to + (run * kRepeat + k * kLanes) * static_cast<int64_t>(sizeof(T)), &lanes, sizeof(lanes));
    }
  }
  return run;
}

/// As many runs as may be written in whole vectors, which pass over the first lanes of the next run, but not over the
/// end. How many they were.
template <class T>
int64_t repeat_in_pieces(const ElementRuns& runs, std::byte* to) {
  constexpr int64_t kLanes = kPieceBytes / static_cast<int64_t>(sizeof(T));
  const int64_t run_bytes = runs.count * static_cast<int64_t>(sizeof(T));
  const int64_t pieces = core::ceil_div(runs.count, kLanes);
  const int64_t behind = core::ceil_div(pieces * kPieceBytes - run_bytes, run_bytes);  // runs that are passed over
  const int64_t some = std::max<int64_t>(0, runs.runs - behind);
  for (int64_t run = 0; run < some; ++run, to += run_bytes) {
    std::array<T, kLanes> piece;
    piece.fill(element_at<T>(runs.elements + run * runs.stride_bytes));
    for (int64_t k = 0; k < pieces; ++k) std::memcpy(to + k * kPieceBytes, piece.data(), kPieceBytes);
  }
  return some;
}

template <class T>
void repeat_short(ElementRuns runs, std::byte* to) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  int64_t written = 0;  // runs
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    if (runs.stride_bytes == kBytes && runs.count == 2) written = repeat_few<T, 2>(runs.elements, runs.runs, to);
    if (runs.stride_bytes == kBytes && runs.count == 3) written = repeat_few<T, 3>(runs.elements, runs.runs, to);
    if (runs.stride_bytes == kBytes && runs.count == 4) written = repeat_few<T, 4>(runs.elements, runs.runs, to);
  }
  if (written == 0) written = repeat_in_pieces<T>(runs, to);
  runs.elements += written * runs.stride_bytes;
  runs.runs -= written;
  repeat_base<T>(runs, to + written * runs.count * kBytes);
}

}  // namespace

void repeat_elements(const ElementRuns& runs, int64_t element_bytes, std::byte* to) {
  const bool is_short = runs.count * element_bytes < 4 * kPieceBytes && runs.runs >= kFewRuns && runs.count > 0;
  with_element(element_bytes, [&](auto sample) {
    is_short ? repeat_short<decltype(sample)>(runs, to) : repeat_by_level<decltype(sample)>(runs, to);
  });
}

void repeat_element(const std::byte* element, int64_t element_bytes, std::byte* to, int64_t count) {
  repeat_elements({.elements = element, .stride_bytes = 0, .runs = 1, .count = count}, element_bytes, to);
}

void pad_block(std::byte* block, int64_t element_bytes, int64_t lanes) {
  if (lanes == kBlockLanes) return;
  std::byte* const end = block + lanes * element_bytes;
  repeat_element(end - element_bytes, element_bytes, end, kBlockLanes - lanes);
}

}  // namespace meshd::kernels
