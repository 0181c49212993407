// Vectors of a register's width, loaded from and stored to any address. Private to product/.
#pragma once

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
