// Overflow-checked arithmetic on sizes from requests: throws instead of wrapping.
#pragma once

#include <cstdint>
#include <span>

#include "service/core/error.h"

namespace meshd::core {

/// a * b; throws Error invalid_array when the product does not fit in int64.
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) throw Error("invalid_array", "size does not fit in 63 bits");
  return out;
}

/// a + b; throws Error invalid_array when the sum does not fit in int64.
inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) throw Error("invalid_array", "size does not fit in 63 bits");
  return out;
}

/// The product of all sizes, 1 for none.
inline int64_t checked_product(std::span<const int64_t> sizes) {
  int64_t out = 1;
  for (const int64_t size : sizes) out = checked_mul(out, size);
  return out;
}

/// ceil(a / b) for a >= 0, b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// floor(a / b) for any a, b != 0: floor_div(-7, 2) == -4.
constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

/// The smallest multiple of `unit` that is at least `a`.
constexpr int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

}  // namespace meshd::core
