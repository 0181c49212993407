// Numbers as sums of two doubles, about 106 bits: what functions of double carry so that only their last rounding
// counts. Sums and products are constant expressions, too, so that tables are made by the compiler.
#pragma once

#include <cmath>
#include <type_traits>

namespace meshd::kernels {

/// high + low, where low is at most half a unit in the last place of high.
struct DoubleDouble {
  double high = 0;
  double low = 0;
};

/// a + b where a has the larger magnitude, or is 0 only where b is.
[[gnu::always_inline]] constexpr DoubleDouble ordered_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// a + b
[[gnu::always_inline]] constexpr DoubleDouble exact_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

/// a * b, with FMA at run time; Dekker's product where there is none.
[[gnu::always_inline]] constexpr DoubleDouble exact_product(double a, double b) {
  const double product = a * b;
  if (!std::is_constant_evaluated()) return {product, std::fma(a, b, -product)};
  constexpr double kSplit = 0x1p27 + 1;
  const double a_high = a * kSplit - (a * kSplit - a);
  const double b_high = b * kSplit - (b * kSplit - b);
  const double a_low = a - a_high;
  const double b_low = b - b_high;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = exact_sum(a.high, b.high);
  const DoubleDouble low = exact_sum(a.low, b.low);
  const DoubleDouble sum = ordered_sum(high.high, high.low + low.high);
  return ordered_sum(sum.high, sum.low + low.low);
}
constexpr DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }
constexpr DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = exact_product(a.high, b.high);
  return ordered_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}
constexpr DoubleDouble operator/(DoubleDouble a, double b) {
  const double first = a.high / b;
  const DoubleDouble rest = a + -(exact_product(first, b));
  return ordered_sum(first, rest.high / b);
}
constexpr DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double first = a.high / b.high;
  const DoubleDouble rest = a + -(DoubleDouble{first} * b);
  return ordered_sum(first, rest.high / b.high);
}

}  // namespace meshd::kernels
