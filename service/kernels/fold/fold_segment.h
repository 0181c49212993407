// Folds of segments of one lane: values that follow each other in memory become one. Private to this folder.
//
// 1. Fewer than kShortSegment values, and a few more where the greatest or least float is looked for, are folded from
//    left to right, several segments side by side in vectors.
// 2. More floats that are added in double are added in 16 lanes, fours of them as floats before they are widened.
// 3. The greatest and the least of more floats are found by one comparison a value, where no NaN and no zero decides.
// 4. All others are folded in 64 lanes, and in a tree at the end; from left to right where they are fewer.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "service/kernels/elementwise/functors/float_functors.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"

namespace meshd::kernels {

/// Of __builtin_prefetch: to the second level cache. Fetches into the first one are limited by how many lines it may
/// wait for (on Zen 4 to half of the rate).
inline constexpr int kSecondLevel = 2;

template <class Acc>
using FoldLanes = std::array<Acc, static_cast<size_t>(kBlockLanes)>;

template <class Op, class Acc, class Value>
inline constexpr bool kSumsFloatsInDouble =
    std::is_same_v<Op, Add<double>>&& std::is_same_v<Acc, double>&& std::is_same_v<Value, float>;

/// Maximum and minimum of floats, where the order of values decides nothing but which zero or NaN comes out.
template <class Op, class Acc, class Value>
inline constexpr bool kChoosesFloats = std::is_floating_point_v<Acc>&& std::is_same_v<Acc, Value> &&
                                       (std::is_same_v<Op, Maximum<Acc>> || std::is_same_v<Op, Minimum<Acc>>);

/// The fewest values for which a segment of its own has a loop.
inline constexpr int64_t kShortSegment = 16;
/// Segments that are folded side by side.
inline constexpr int kBeside = 8;

/// `best` becomes the greater (less) of both, lane by lane where V is a vector; of equal ones, and NaN, either.
template <class Op, class T, class V>
[[gnu::always_inline]] inline void choose(V& best, const V& value) {
  if constexpr (std::is_same_v<Op, Maximum<T>>)
    best = best > value ? best : value;
  else
    best = best < value ? best : value;
}

/// The greatest (least) of `count` >= kShortSegment floats into `chosen`; false where one is NaN or it is a zero, whose
/// sign or payload the order decides. One comparison for each value in place of three.
template <class Op, class T>
[[gnu::always_inline]] inline bool choose_fast(const T* from, int64_t count, T& chosen) {
  using Bits = FloatBits<T>;
  constexpr int kWidth = 32 / sizeof(T);
  constexpr int kVectors = static_cast<int>(kShortSegment) / kWidth;
  using Vector [[gnu::vector_size(32)]] = T;
  using Masks [[gnu::vector_size(32)]] = std::make_signed_t<Bits>;
  constexpr auto kMagnitude = static_cast<std::make_signed_t<Bits>>(static_cast<Bits>(~Bits{0}) >> 1);
  const auto infinity = std::bit_cast<std::make_signed_t<Bits>>(std::numeric_limits<T>::infinity());
  Vector best[kVectors];
  Masks magnitude[kVectors] = {};
  std::memcpy(best, from, sizeof(best));
  const auto step = [&](const T* at) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Vector values;
      Masks bits;
      std::memcpy(&values, at + v * kWidth, sizeof(values));
      std::memcpy(&bits, at + v * kWidth, sizeof(bits));
      bits &= kMagnitude;
      magnitude[v] = magnitude[v] > bits ? magnitude[v] : bits;
      choose<Op, T>(best[v], values);
    }
  };
  int64_t i = 0;
#pragma GCC unroll 2
  for (; i + kShortSegment <= count; i += kShortSegment) step(from + i);
  // The last values again, some for the second time.
  if (i < count) step(from + count - kShortSegment);
  Vector one = best[0];
  Masks most = magnitude[0];
#pragma GCC unroll 4
  for (int v = 1; v < kVectors; ++v) {
    choose<Op, T>(one, best[v]);
    most = most > magnitude[v] ? most : magnitude[v];
  }
  std::array<T, kWidth> left;
  std::array<std::make_signed_t<Bits>, kWidth> bits;
  std::memcpy(left.data(), &one, sizeof(one));
  std::memcpy(bits.data(), &most, sizeof(most));
#pragma GCC unroll 3
  for (size_t half = kWidth / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (size_t lane = 0; lane < half; ++lane) {
      choose<Op, T>(left[lane], left[lane + half]);
      bits[lane] = std::max(bits[lane], bits[lane + half]);
    }
  }
  chosen = left[0];
  return bits[0] <= infinity && chosen != 0;
}

/// A sum of floats in double, in 16 lanes. Blocks of four rows of 16 are added as floats before they are widened: three
/// roundings, and a quarter of the conversions. Generated code adds alike (TileCode::sum).
class FloatSum {
 public:
  [[gnu::always_inline]] FloatSum() {
#pragma GCC unroll 4
    for (int k = 0; k < 2 * kHalves; ++k) sums_[k] = Doubles{-0.0, -0.0, -0.0, -0.0};  // x + -0 is x
  }

  /// A block of kBlockLanes values.
  [[gnu::always_inline]] void add_block(const float* from) {
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      Floats sum;
      load(from + half * kWidth, sum);
#pragma GCC unroll 4
      for (int row = 1; row < kRows; ++row) {
        Floats values;
        load(from + row * kLanes + half * kWidth, values);
        sum += values;
      }
      add(half, sum);
    }
  }

  /// What follows blocks: `rest` values in front of `end`, fewer than a block. They are added as the last block of all,
  /// in which those of the block before are -0.
  [[gnu::always_inline]] void add_rest(const float* end, int64_t rest) {
    const auto first = static_cast<int32_t>(kBlockLanes - rest);
    const int first_row = first / static_cast<int>(kLanes);  // those before are -0, which changes no sum
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      Floats sum = kNone;
      for (int row = first_row; row < kRows; ++row) {
        const auto lane = static_cast<int32_t>(row * kLanes + half * kWidth);
        Floats values;
        load(end - kBlockLanes + lane, values);
        drop_before(first, lane, values);
        sum += values;
      }
      add(half, sum);
    }
  }

  /// All of a segment of kLanes values or more, fewer than a block: in double alone, so that it is exact for longer.
  [[gnu::always_inline]] void add_short(const float* from, int64_t count) {
    const int64_t whole = count / kLanes;
    const auto left = static_cast<int32_t>(count % kLanes);
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      for (int64_t row = 0; row < whole; ++row) {
        Floats values;
        load(from + row * kLanes + half * kWidth, values);
        add(half, values);
      }
      if (left == 0) continue;
      // The last values of all: those that belong to whole rows are -0.
      Floats values;
      load(from + count - kLanes + half * kWidth, values);
      drop_before(static_cast<int32_t>(kLanes) - left, static_cast<int32_t>(half * kWidth), values);
      add(half, values);
    }
  }

  /// One NaN for all: which of two comes out of an addition depends on the order of operands, which is the compiler's.
  [[nodiscard, gnu::always_inline]] double total() const {
    const Doubles sum = (sums_[0] + sums_[1]) + (sums_[2] + sums_[3]);
    const double total = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    return total == total ? total : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  using Floats [[gnu::vector_size(32)]] = float;
  using Doubles [[gnu::vector_size(32)]] = double;
  using Masks [[gnu::vector_size(32)]] = int32_t;
  static constexpr int64_t kLanes = kShortSegment;
  static constexpr int64_t kWidth = 8;
  static constexpr int kHalves = 2;  // of a row of kLanes
  static constexpr int kRows = 4;    // of a block
  static constexpr Floats kNone = {-0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F};

  [[gnu::always_inline]] static void load(const float* at, Floats& values) { std::memcpy(&values, at, sizeof(values)); }
  /// Lanes before `first` become -0; the first value is lane `lane`.
  [[gnu::always_inline]] static void drop_before(int32_t first, int32_t lane, Floats& values) {
    const Masks stays = Masks{lane, lane + 1, lane + 2, lane + 3, lane + 4, lane + 5, lane + 6, lane + 7} >= first;
    values = stays ? values : kNone;
  }
  [[gnu::always_inline]] void add(int half, const Floats& values) {
    // Arrays, because g++ converts a vector of four floats by halves.
    float narrow[kWidth];
    double wide[kWidth];
    std::memcpy(narrow, &values, sizeof(narrow));
#pragma GCC unroll 8
    for (int lane = 0; lane < kWidth; ++lane) wide[lane] = static_cast<double>(narrow[lane]);
    Doubles low;
    Doubles high;
    std::memcpy(&low, wide, sizeof(low));
    std::memcpy(&high, wide + kWidth / 2, sizeof(high));
    sums_[2 * half] += low;
    sums_[2 * half + 1] += high;
  }

  Doubles sums_[2 * kHalves];
};

/// The sum of `count` >= kShortSegment floats.
[[gnu::always_inline]] inline double sum_floats(const float* from, int64_t count) {
  constexpr int64_t kAhead = 1024;  // values: the next page is prefetched
  constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(float));
  FloatSum sum;
  if (count < kBlockLanes) {
    sum.add_short(from, count);
    return sum.total();
  }
  for (int64_t i = 0; i + kBlockLanes <= count; i += kBlockLanes) {
    for (int64_t line = 0; line < kBlockLanes; line += kLine)
      __builtin_prefetch(from + i + kAhead + line, 0, kSecondLevel);
    sum.add_block(from + i);
  }
  if (count % kBlockLanes > 0) sum.add_rest(from + count, count % kBlockLanes);
  return sum.total();
}

/// One segment of at least kShortSegment values.
template <class Op, class Acc, class Value>
[[gnu::always_inline]] inline Acc fold_one(const Value* from, int64_t count) {
  constexpr int64_t kLanes = kBlockLanes;
  if constexpr (kSumsFloatsInDouble<Op, Acc, Value>) return sum_floats(from, count);
  if constexpr (kChoosesFloats<Op, Acc, Value>) {
    Acc chosen;
    if (choose_fast<Op>(from, count, chosen)) return chosen;
  }
  if (count < kLanes) {
    Acc sum = static_cast<Acc>(from[0]);
    for (int64_t i = 1; i < count; ++i) sum = Op::apply(sum, static_cast<Acc>(from[i]));
    return sum;
  }
  alignas(64) FoldLanes<Acc> lanes;
  for (int64_t j = 0; j < kLanes; ++j) lanes[static_cast<size_t>(j)] = static_cast<Acc>(from[j]);
  int64_t i = kLanes;
  if constexpr (std::is_same_v<Op, Add<double>> && std::is_same_v<Value, double>) {
    // Eight values in a tree become one: a chain of sums that is an eighth as long loses fewer digits.
    for (; i + 8 * kLanes <= count; i += 8 * kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) {
        const Value* const eight = from + i + j;
        const Value first = (eight[0] + eight[kLanes]) + (eight[2 * kLanes] + eight[3 * kLanes]);
        const Value second = (eight[4 * kLanes] + eight[5 * kLanes]) + (eight[6 * kLanes] + eight[7 * kLanes]);
        lanes[static_cast<size_t>(j)] += first + second;
      }
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      Acc& lane = lanes[static_cast<size_t>(j)];
      lane = Op::apply(lane, static_cast<Acc>(from[i + j]));
    }
  }
  for (int64_t j = 0; i + j < count; ++j) {
    Acc& lane = lanes[static_cast<size_t>(j)];
    lane = Op::apply(lane, static_cast<Acc>(from[i + j]));
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] = Op::apply(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

/// The greatest (least) floats of kBeside short segments; false as of choose_fast.
template <class Op, class T>
[[gnu::always_inline]] inline bool choose_beside(const T* from, int64_t count, T* to) {
  using Bits = std::make_signed_t<FloatBits<T>>;
  using Vector [[gnu::vector_size(kBeside * sizeof(T))]] = T;
  using Masks [[gnu::vector_size(kBeside * sizeof(T))]] = Bits;
  constexpr auto kMagnitude = static_cast<Bits>(static_cast<FloatBits<T>>(~FloatBits<T>{0}) >> 1);
  Masks magnitude = {};
  Vector best = {};
  for (int64_t i = 0; i < count; ++i) {
    const T* const at = from + i;
    const Vector values = {at[0],         at[count],     at[2 * count], at[3 * count],
                           at[4 * count], at[5 * count], at[6 * count], at[7 * count]};
    Masks bits;
    std::memcpy(&bits, &values, sizeof(bits));
    bits &= kMagnitude;
    magnitude = magnitude > bits ? magnitude : bits;
    if (i == 0) best = values;
    choose<Op, T>(best, values);
  }
  std::memcpy(to, &best, sizeof(best));
  Bits most = 0;
  bool has_zero = false;
#pragma GCC unroll 8
  for (int g = 0; g < kBeside; ++g) {
    most = most > magnitude[g] ? most : magnitude[g];
    has_zero = has_zero || best[g] == 0;
  }
  return most <= std::bit_cast<Bits>(std::numeric_limits<T>::infinity()) && !has_zero;
}

/// Some short segments, from left to right, side by side.
template <class Op, class Acc, class Value, int kGroups>
[[gnu::always_inline]] inline void fold_beside(const Value* from, int64_t count, Acc* to) {
  if constexpr (kChoosesFloats<Op, Acc, Value> && kGroups == kBeside) {
    if (choose_beside<Op>(from, count, to)) return;
  }
  std::array<Acc, kGroups> sums;
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) sums[static_cast<size_t>(g)] = static_cast<Acc>(from[g * count]);
  for (int64_t i = 1; i < count; ++i) {
    std::array<Acc, kGroups> values;
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) values[static_cast<size_t>(g)] = static_cast<Acc>(from[g * count + i]);
#pragma GCC unroll 8
    for (size_t g = 0; g < kGroups; ++g) sums[g] = Op::apply(sums[g], values[g]);
  }
  std::memcpy(to, sums.data(), sizeof(sums));
}

}  // namespace meshd::kernels
