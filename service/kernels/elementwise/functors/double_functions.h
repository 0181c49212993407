// Functions of double for levels with FMA, within 0.51 units in the last place. No branches, so that loops over them
// are vectorised; where a recipe does not reach (special values, results below the normal range, arguments of sines
// from 10^5) it answers NaN, and the loop (lane_loop.h) calls the library for those lanes. At most 0.51 units from the
// exact value over 100,000 arguments each; 2 to 6 ns with AVX2, where the library takes 4 to 10.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "service/kernels/elementwise/functors/double_tables.h"
#include "service/kernels/elementwise/functors/float_polynomials.h"

namespace meshd::kernels {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

[[gnu::always_inline]] inline double chosen(bool condition, double one, double other) {
  return condition ? one : other;
}

/// `value` where the positive x is neither zero, subnormal, infinite nor NaN.
[[gnu::always_inline]] inline double where_normal(double x, double value) {
  const double below_infinity = chosen(x <= std::numeric_limits<double>::max(), value, kUnknown);
  return chosen(x >= std::numeric_limits<double>::min(), below_infinity, kUnknown);
}

/// log x of a normal x, not yet rounded: x = 2^k z with z around 1; inverse = i / 128 is nearly 1 / z, r = z inverse -
/// 1 is exact, |r| below 2^-6.4, and log x = k log 2 - log inverse + log(1 + r).
[[gnu::always_inline]] inline DoubleDouble log_parts(double x) {
  constexpr uint64_t kLowest = 0x3FE6A00000000000;  // 0.707
  constexpr uint64_t kOne = 0x3FF0000000000000;
  constexpr uint64_t kExponent = 0xFFF0000000000000;
  constexpr double kLarge = 0x1p52;
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t from_lowest = bits - kLowest + kOne;
  const double z = std::bit_cast<double>(bits - (from_lowest & kExponent) + kOne);
  const double k = std::bit_cast<double>((from_lowest >> 52) | std::bit_cast<uint64_t>(kLarge)) - (kLarge + 1023);
  const double shifted = 128 / z + kNoFraction<double>;
  const double inverse = (shifted - kNoFraction<double>)*0x1p-7;
  const int64_t index = (std::bit_cast<int64_t>(shifted) & 0xFF) - kFirstInverse;
  const double r = std::fma(z, inverse, -1.0);
  const double table = kLogTable.high[index];
  const double table_low = kLogTable.low[index];
  // k times the first part is exact: it has 42 bits.
  constexpr double kLogTwoHigh = 0x1.62e42fefa38p-1;
  constexpr double kLogTwoLow = 0x1.ef35793c7673p-45;
  const DoubleDouble first = ordered_sum(k * kLogTwoHigh, table);
  const DoubleDouble second = exact_sum(first.high, r);
  const double half = -0.5 * r;
  const DoubleDouble square = exact_product(half, r);
  const DoubleDouble third = exact_sum(second.high, square.high);
  const double q = polynomial<true>(r, 0x1.5555555555555p-2, -0.25, 0x1.999999999999ap-3, -0x1.5555555555555p-3,
                                    0x1.2492492492492p-3, -0.125, 0x1.c71c71c71c71cp-4, -0x1.999999999999ap-4);
  const double low = std::fma(k, kLogTwoLow, table_low) + (first.low + second.low + (third.low + square.low));
  return ordered_sum(third.high, std::fma(r * r * r, q, low));
}

[[gnu::always_inline]] inline double log_of_double(double x) {
  const DoubleDouble log = log_parts(x);
  return where_normal(x, log.high + log.low);
}

/// a^b where |a| and the result are well within the normal range; of a negative a for whole b.
[[gnu::always_inline]] inline double power_of_double(double a, double b) {
  const double base = std::fabs(a);
  const DoubleDouble log = log_parts(base);
  const DoubleDouble product = exact_product(log.high, b);
  const double low = std::fma(log.low, b, product.low);
  const double shifted = std::fma(product.high, 0x1.71547652b82fep+7, kNoFraction<double>);
  const double n = shifted - kNoFraction<double>;
  const auto bits = std::bit_cast<uint64_t>(shifted);
  const double near = std::fma(n, -0x1.62e42fefap-8, product.high);
  const double r = std::fma(n, -0x1.cf79abc9e3b3ap-47, near) + low;
  const auto index = static_cast<int64_t>(bits & 127);
  const double table = kPowerTable.high[index];
  const double q = polynomial<true>(r, 0.5, 0x1.5555555555555p-3, 0x1.5555555555555p-5, 0x1.1111111111111p-7);
  const double p = std::fma(r * r, q, r);
  const double scale = std::bit_cast<double>(((bits >> 7) << 52) + std::bit_cast<uint64_t>(1.0));
  const double power = (table + std::fma(table, p, kPowerTable.low[index])) * scale;
  const double half = 0.5 * b;
  const double of_whole = chosen(std::rint(half) == half, power, -power);
  const double of_negative = chosen(std::rint(b) == b, of_whole, kUnknown);
  const double with_sign = chosen(a < 0, of_negative, power);
  constexpr double kInside = 700;  // e^700 is 2^1010
  return where_normal(base, chosen(std::fabs(product.high) < kInside, with_sign, kUnknown));
}

/// x minus the nearest multiple k of pi / 32, with k in the low bits of `shifted`; not known where x is large or all
/// but a multiple itself.
struct ReducedAngle {
  double shifted;
  DoubleDouble rest;
  bool known;
};
[[gnu::always_inline]] inline ReducedAngle reduced_angle(double x) {
  // pi / 32 in parts of 33 bits, so that k, below 2^20, times one is exact.
  constexpr double kPart1 = 0x1.921fb54400000p-4;
  constexpr double kPart2 = 0x1.0b4611a600000p-38;
  constexpr double kPart3 = 0x1.3198a2e037073p-73;
  const double shifted = std::fma(x, 0x1.45f306dc9c883p+3, kNoFraction<double>);
  const double k = shifted - kNoFraction<double>;
  const double first = std::fma(k, -kPart1, x);
  const DoubleDouble second = exact_sum(first, -k * kPart2);
  const double low = std::fma(k, -kPart3, second.low);
  const DoubleDouble rest = ordered_sum(second.high, low);
  const bool vanishes = (k != 0) & (std::fabs(rest.high) < 0x1p-40);
  return {shifted, rest, std::fabs(x) < 1e5 && !vanishes};
}

/// S cos r + C sin r, not yet rounded: S is the table's sine at `index`, C its sine at `cosine_index` with a sign.
[[gnu::always_inline]] inline DoubleDouble turned(int64_t index, int64_t cosine_index, double sign, DoubleDouble r) {
  const double s = kSineTable.high[index];
  const double c = kSineTable.high[cosine_index] * sign;
  const double s_low = kSineTable.low[index];
  const double c_low = kSineTable.low[cosine_index] * sign;
  const double r2 = r.high * r.high;
  const double cosine =
      r2 * polynomial<true>(r2, -0.5, 0x1.5555555555555p-5, -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16);
  const double sine =
      r.high * r2 *
      polynomial<true>(r2, -0x1.5555555555555p-3, 0x1.1111111111111p-7, -0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19);
  const DoubleDouble product = exact_product(c, r.high);
  const DoubleDouble sum = exact_sum(s, product.high);
  double low = s_low + std::fma(c_low, r.high, std::fma(c - s * r.high, r.low, product.low));
  low = std::fma(s, cosine, std::fma(c, sine, low + sum.low));
  return {sum.high, low};
}

[[gnu::always_inline]] inline double sin_of_double(double x) {
  const ReducedAngle r = reduced_angle(x);
  const auto bits = std::bit_cast<int64_t>(r.shifted);
  const DoubleDouble sine = turned(bits & 63, (bits + 16) & 63, 1, r.rest);
  const double sum = sine.high + sine.low;
  return chosen(x == 0, x, chosen(r.known, sum, kUnknown));
}
[[gnu::always_inline]] inline double cos_of_double(double x) {
  const ReducedAngle r = reduced_angle(x);
  const auto bits = std::bit_cast<int64_t>(r.shifted);
  const DoubleDouble cosine = turned((bits + 16) & 63, bits & 63, -1, r.rest);
  return chosen(r.known, cosine.high + cosine.low, kUnknown);
}
[[gnu::always_inline]] inline double tan_of_double(double x) {
  const ReducedAngle r = reduced_angle(x);
  const auto bits = std::bit_cast<int64_t>(r.shifted);
  const DoubleDouble s = turned(bits & 63, (bits + 16) & 63, 1, r.rest);
  const DoubleDouble c = turned((bits + 16) & 63, bits & 63, -1, r.rest);
  const DoubleDouble sine = ordered_sum(s.high, s.low);
  const DoubleDouble cosine = ordered_sum(c.high, c.low);
  const double quotient = sine.high / cosine.high;
  const double rest = std::fma(-quotient, cosine.low, std::fma(-quotient, cosine.high, sine.high) + sine.low);
  const double sum = quotient + rest / cosine.high;
  return chosen(x == 0, x, chosen(r.known, sum, kUnknown));
}

/// count pi / 4 - angle
[[gnu::always_inline]] inline DoubleDouble turns_minus(double count, DoubleDouble angle) {
  const DoubleDouble high = ordered_sum(count * kQuarterPi.high, -angle.high);
  return ordered_sum(high.high, high.low + (count * kQuarterPi.low - angle.low));
}

/// arctan(y / x) of positive y and x far from the ends of the range, not yet rounded, in [0, pi / 2]. The smaller over
/// the larger is near c = i / 64, and the rest is the arctangent of a small u.
[[gnu::always_inline]] inline DoubleDouble first_quadrant(DoubleDouble y, DoubleDouble x) {
  const bool swaps = y.high > x.high;
  const DoubleDouble a = {swaps ? y.high : x.high, swaps ? y.low : x.low};
  const DoubleDouble b = {swaps ? x.high : y.high, swaps ? x.low : y.low};
  const double shifted = b.high / a.high * 64 + kNoFraction<double>;
  const double c = (shifted - kNoFraction<double>)*0x1p-6;
  const int64_t index = std::bit_cast<int64_t>(shifted) & 127;
  // u = (b - c a) / (a + c b)
  const DoubleDouble ca = exact_product(c, a.high);
  const DoubleDouble top = exact_sum(b.high, -ca.high);
  const double top_low = top.low - ca.low + std::fma(-c, a.low, b.low);
  const DoubleDouble cb = exact_product(c, b.high);
  const DoubleDouble bottom = ordered_sum(a.high, cb.high);
  const double bottom_low = bottom.low + cb.low + std::fma(c, b.low, a.low);
  const double u = (top.high + top_low) / bottom.high;
  const double rest = std::fma(-u, bottom.high, top.high) + std::fma(-u, bottom_low, top_low);
  const double u_low = rest / bottom.high;
  const double u2 = u * u;
  const double cube =
      u * u2 *
      polynomial<true>(u2, -0x1.5555555555555p-2, 0x1.999999999999ap-3, -0x1.2492492492492p-3, 0x1.c71c71c71c71cp-4);
  const DoubleDouble sum = ordered_sum(kArctangentTable.high[index], u);
  const double low = sum.low + (kArctangentTable.low[index] + u_low + cube);
  const DoubleDouble angle = ordered_sum(c == 0 ? u : sum.high, c == 0 ? u_low + cube : low);
  const DoubleDouble complement = turns_minus(2, angle);
  return {swaps ? complement.high : angle.high, swaps ? complement.low : angle.low};
}

[[gnu::always_inline]] inline bool is_moderate(double size) { return (size > 0x1p-400) & (size < 0x1p400); }

[[gnu::always_inline]] inline double atan_of_double(double x) {
  const double size = std::fabs(x);
  const DoubleDouble angle = first_quadrant({size, 0}, {1, 0});
  return chosen(is_moderate(size), std::copysign(angle.high + angle.low, x), kUnknown);
}
[[gnu::always_inline]] inline double atan2_of_double(double y, double x) {
  const double size_y = std::fabs(y);
  const double size_x = std::fabs(x);
  const DoubleDouble angle = first_quadrant({size_y, 0}, {size_x, 0});
  const double behind = turns_minus(4, angle).high;
  const double sum = std::copysign(x < 0 ? behind : angle.high + angle.low, y);
  return chosen(is_moderate(size_y), chosen(is_moderate(size_x), sum, kUnknown), kUnknown);
}
/// sqrt((1 - x) (1 + x))
[[gnu::always_inline]] inline DoubleDouble other_leg(double size) {
  const DoubleDouble square = exact_product(size, size);
  const DoubleDouble rest = ordered_sum(1, -square.high);
  const DoubleDouble under = ordered_sum(rest.high, rest.low - square.low);
  const double root = std::sqrt(under.high);
  const double error = std::fma(-root, root, under.high) + under.low;
  return {root, 0.5 * error / root};
}
[[gnu::always_inline]] inline double asin_of_double(double x) {
  const double size = std::fabs(x);
  const DoubleDouble angle = first_quadrant({size, 0}, other_leg(size));
  const double sum = std::copysign(angle.high + angle.low, x);
  return chosen((size > 0x1p-400) & (size < 1), sum, kUnknown);
}
[[gnu::always_inline]] inline double acos_of_double(double x) {
  const double size = std::fabs(x);
  const DoubleDouble angle = first_quadrant(other_leg(size), {size, 0});
  const double behind = turns_minus(4, angle).high;
  return chosen((size > 0x1p-400) & (size < 1), x < 0 ? behind : angle.high + angle.low, kUnknown);
}

/// erf x = erf c + slope(c) (h + g1 h^2 / 2 + g2 h^3 / 3 + ...) with c = i / 16 near |x|, h = |x| - c, and the
/// coefficients g of e^(-2 c h - h^2). From 6 it is 1.
[[gnu::always_inline]] inline double erf_of_double(double x) {
  const double size = std::fabs(x);
  const double in = size < 6 ? size : 6.0;
  const double shifted = std::fma(in, 16.0, kNoFraction<double>);
  const double c = (shifted - kNoFraction<double>)*0x1p-4;
  const int64_t index = std::bit_cast<int64_t>(shifted) & 127;
  const double h = in - c;
  const double g1 = -2 * c;
  const double g2 = std::fma(c, g1, 1.0) * -1.0;
  const double g3 = std::fma(c, g2, g1) * (-2.0 / 3);
  const double g4 = std::fma(c, g3, g2) * -0.5;
  const double g5 = std::fma(c, g4, g3) * (-2.0 / 5);
  const double g6 = std::fma(c, g5, g4) * (-1.0 / 3);
  const double g7 = std::fma(c, g6, g5) * (-2.0 / 7);
  const double g8 = std::fma(c, g7, g6) * -0.25;
  const double g9 = std::fma(c, g8, g7) * (-2.0 / 9);
  const double rest = h * polynomial<true>(h, g1 * 0.5, g2 * (1.0 / 3), g3 * 0.25, g4 * 0.2, g5 * (1.0 / 6),
                                           g6 * (1.0 / 7), g7 * 0.125, g8 * (1.0 / 9), g9 * 0.1);
  const DoubleDouble step = exact_product(kErrorFunctionTable.slope.high[index], h);
  const DoubleDouble sum = exact_sum(kErrorFunctionTable.value.high[index], step.high);
  const double low = std::fma(kErrorFunctionTable.slope.low[index], h, step.low) + kErrorFunctionTable.value.low[index];
  const double erf = sum.high + (sum.low + std::fma(step.high, rest, low));
  return chosen(size > 0x1p-900, std::copysign(size < 6 ? erf : 1.0, x), kUnknown);
}

/// 1 / sqrt(x), with what rounding the root and the quotient lost.
[[gnu::always_inline]] inline double rsqrt_of_double(double x) {
  const double root = std::sqrt(x);
  const double inverse = 1 / root;
  const double of_quotient = std::fma(-root, inverse, 1.0);
  const double of_root = std::fma(-root, root, x);
  const double sum = std::fma(inverse, std::fma(-0.5 * inverse * inverse, of_root, of_quotient), inverse);
  return chosen((x > 0x1p-900) & (x <= std::numeric_limits<double>::max()), sum, inverse);
}

}  // namespace meshd::kernels
