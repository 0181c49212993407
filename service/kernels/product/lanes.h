// Vectors of a register's width, loaded from and stored to any address. Private to product/.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace meshd::kernels {

/// In a struct, because an argument of a template would lose the alignment, as would a pointer declared auto.
template <typename T, int kBytes>
struct Lanes {
  using Element = T;
  using Vector [[gnu::vector_size(kBytes), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  using Index [[gnu::vector_size(kBytes)]] = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  static constexpr int64_t kCount = kBytes / static_cast<int64_t>(sizeof(T));

  /// What is there, as a reference: g++ has no vectors as results of functions that a lower level might call.
  [[gnu::always_inline]] static const Vector& at(const T* from) { return *reinterpret_cast<const Vector*>(from); }
  [[gnu::always_inline]] static Vector& at(T* to) { return *reinterpret_cast<Vector*>(to); }

  /// sum + a b, with one rounding where sums of products of vectors have one: in files where these are contracted.
  [[gnu::always_inline]] static T add_product(T sum, T a, T b) {
    constexpr bool kContracts = kBytes > 16;  // what has longer vectors has the instruction
    if constexpr (kContracts) return std::fma(a, b, sum);
    return sum + a * b;
  }

  /// All lanes added up: halves, then halves of those.
  [[gnu::always_inline]] static T total(const Vector& lanes) {
    Vector value = lanes;
#pragma GCC unroll 4
    for (int64_t half = kCount / 2; half > 0; half /= 2) {
      Index other{};
#pragma GCC unroll 16
      for (int64_t i = 0; i < kCount; ++i) other[i] = i ^ half;
      value += __builtin_shuffle(value, other);
    }
    return value[0];
  }

  /// The totals of kCount vectors, which are overwritten: bit for bit as total() makes them.
  [[gnu::always_inline]] static void totals(Vector (&vectors)[kCount], Vector& to) {
    // Of each two, the sums of halves go into the halves of one.
    int64_t left = kCount;
#pragma GCC unroll 4
    for (int64_t half = kCount / 2; half > 0; half /= 2) {
      Index first{};
      Index second{};
#pragma GCC unroll 16
      for (int64_t i = 0; i < kCount; ++i) {
        const bool is_second = (i & half) != 0;
        first[i] = is_second ? kCount + (i ^ half) : i;
        second[i] = is_second ? kCount + i : i ^ half;
      }
      left /= 2;
#pragma GCC unroll 16
      for (int64_t k = 0; k < left; ++k)
        vectors[k] = __builtin_shuffle(vectors[2 * k], vectors[2 * k + 1], first) +
                     __builtin_shuffle(vectors[2 * k], vectors[2 * k + 1], second);
    }
    // The vector that was the k-th has its total where the bits of k are, the lowest first.
    Index place{};
#pragma GCC unroll 16
    for (int64_t k = 0; k < kCount; ++k) {
      int64_t lane = 0;
      for (int64_t half = kCount / 2, bit = 1; half > 0; half /= 2, bit *= 2) lane += (k & bit) != 0 ? half : 0;
      place[k] = lane;
    }
    to = __builtin_shuffle(vectors[0], place);
  }

  /// Leaves the last `count` lanes; the others become zero, whatever they are.
  [[gnu::always_inline]] static void keep_last(Vector& value, int64_t count) {
    Index lane{};
#pragma GCC unroll 16
    for (int64_t i = 0; i < kCount; ++i) lane[i] = i;
    const Vector zero{};
    using Number = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    value = lane >= static_cast<Number>(kCount - count) ? value : zero;
  }
};

}  // namespace meshd::kernels
