#include "service/kernels/elementwise/lanes/count_lanes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

/// Numbers that are converted, or repeated, at a time.
constexpr int64_t kChunk = 256;
constexpr int64_t kMaxElementBytes = 16;
/// Shorter rows are copied, not counted again.
constexpr int64_t kShortRow = 256;
using Elements = std::array<std::byte, kChunk * kMaxElementBytes>;

/// A float is converted from an integer of 32 bits, which has a vector conversion on every processor.
template <class T>
[[gnu::always_inline]] inline void count_up(int64_t first, T* to, int64_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto begin = static_cast<int32_t>(first);
    const auto end = static_cast<int32_t>(count);
    for (int32_t i = 0; i < end; ++i) to[i] = static_cast<T>(begin + i);
  } else {
    const auto begin = static_cast<std::make_unsigned_t<T>>(first);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(begin + static_cast<std::make_unsigned_t<T>>(i));
  }
}

template <class T>
void count_base(int64_t first, T* to, int64_t count) {
  count_up(first, to, count);
}
#if defined(__x86_64__)
template <class T>
[[gnu::target("arch=x86-64-v3")]] void count_v3(int64_t first, T* to, int64_t count) {
  count_up(first, to, count);
}
template <class T>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void count_v4(int64_t first, T* to, int64_t count) {
  count_up(first, to, count);
}
#endif

template <class T>
void count_by_level(int64_t first, std::byte* to, int64_t count) {
  T* const lanes = reinterpret_cast<T*>(to);
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return count_v4<T>(first, lanes, count);
  if (cpu_level() == CpuLevel::kV3) return count_v3<T>(first, lanes, count);
#endif
  count_base<T>(first, lanes, count);
}

/// Any type, from integers in memory.
template <class T>
void count_and_convert(int64_t first, DType from, DType dtype, std::byte* to, int64_t count) {
  const ScalarKernel convert = find_scalar_kernel(ScalarOp::kConvert, from, dtype);
  std::array<T, kChunk> numbers;
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  for (int64_t lane = 0; lane < count; lane += kChunk) {
    const int64_t some = std::min(kChunk, count - lane);
    count_by_level<T>(first + lane, reinterpret_cast<std::byte*>(numbers.data()), some);
    convert(&bytes, to + lane * tensor::size_bytes(dtype), some);
  }
}

/// first, first + 1, ... in the type itself where that is the same, else in as few bits as they take.
void count_row(int64_t first, DType dtype, std::byte* to, int64_t count) {
  const bool is_short =
      first >= std::numeric_limits<int32_t>::min() && first + count <= std::numeric_limits<int32_t>::max();
  if (is_short && dtype == DType::kFloat32) return count_by_level<float>(first, to, count);
  if (is_short && dtype == DType::kFloat64) return count_by_level<double>(first, to, count);
  if (tensor::is_integer(dtype) && tensor::row(dtype).bits >= 8) {
    return tensor::with_integer(
        dtype, [&]<typename T>(T) { count_by_level<T>(first, to, count); }, [] {});
  }
  if (is_short) return count_and_convert<int32_t>(first, DType::kInt32, dtype, to, count);
  count_and_convert<int64_t>(first, DType::kInt64, dtype, to, count);
}

/// Rows of numbers that occur once in a row; the first lane is the `index`th of its row.
void count_rows(const CountedLanes& lanes, DType dtype, int64_t index, int64_t count, std::byte* to) {
  const int64_t element_bytes = tensor::size_bytes(dtype);
  while (count > 0) {
    const int64_t some = std::min(count, lanes.size - index);
    count_row(lanes.first + index, dtype, to, some);
    int64_t done = some;
    // A whole short row is copied, then both, then all four.
    while (index == 0 && lanes.size < kShortRow && done < count) {
      const int64_t more = std::min(done, count - done);
      std::memcpy(to + done * element_bytes, to, static_cast<size_t>(more * element_bytes));
      done += more;
    }
    to += done * element_bytes;
    count -= done;
    index = 0;
  }
}

}  // namespace

void count_lanes(const CountedLanes& lanes, DType dtype, int64_t start, int64_t count, std::byte* to) {
  const int64_t repeat = lanes.repeat;
  if (repeat == 1) return count_rows(lanes, dtype, start % lanes.size, count, to);
  const int64_t element_bytes = tensor::size_bytes(dtype);
  const CountedLanes once = {.first = lanes.first, .size = lanes.size, .repeat = 1};
  alignas(kMaxElementBytes) Elements elements;
  int64_t number = start / repeat;
  int64_t skip = start % repeat;
  while (count > 0) {
    // Whole runs; a first or last one that is not whole goes alone.
    const bool is_part = skip > 0 || count < repeat;
    const int64_t runs = is_part ? 1 : std::min(kChunk, count / repeat);
    const int64_t run = is_part ? std::min(count, repeat - skip) : repeat;
    count_rows(once, dtype, number % lanes.size, runs, elements.data());
    repeat_elements({.elements = elements.data(), .stride_bytes = element_bytes, .runs = runs, .count = run},
                    element_bytes, to);
    to += runs * run * element_bytes;
    count -= runs * run;
    number += runs;
    skip = 0;
  }
}

}  // namespace meshd::kernels
