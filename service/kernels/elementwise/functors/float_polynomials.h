// Exponentials, logarithms and the inverse of erf as polynomials, for loops that the compiler vectorises: no branches,
// no tables. With FMA (levels kV3 and kV4) a product and a sum are one rounding, else two. Those that generated code
// computes itself are float_recipes.h's. Largest errors in units in the last place, over 2 million floats:
//   log_of       0.77
//   power_of     0.501
//   erf_inv_of   2.4, 1.7 with FMA
// power_of computes in double, as far as a float needs it. Polynomials are minimax ones of the relative error
// (Remez; Lawson for erf_inv_of), their coefficients rounded to the type.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "service/kernels/elementwise/functors/float_recipes.h"

namespace meshd::kernels {

template <bool kFma, class T, class... Coefficients>
[[gnu::always_inline]] inline T polynomial(T x, Coefficients... coefficients) {
  LoopMachine<T, kFma> machine;
  return polynomial_recipe(machine, x, coefficients...);
}

/// Of doubles without FMA the library's.
template <bool kFma, class T>
[[gnu::always_inline]] inline T exp_of(T x) {
  if constexpr (!kFma && std::is_same_v<T, double>) return std::exp(x);
  LoopMachine<T, kFma> machine;
  return exp_recipe(machine, x);
}

template <bool kFma, class T>
[[gnu::always_inline]] inline T logistic_of(T x) {
  LoopMachine<T, kFma> machine;
  return logistic_recipe(machine, x, exp_of<kFma>(machine.negative_magnitude(x)));
}

template <bool kFma>
[[gnu::always_inline]] inline float tanh_of(float x) {
  LoopMachine<float, kFma> machine;
  return tanh_recipe(machine, x);
}

template <bool kFma>
[[gnu::always_inline]] inline float erf_of(float x) {
  LoopMachine<float, kFma> machine;
  return erf_recipe(machine, x);
}

/// log x = k log 2 + log(1 + f), with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2 / 2 + f^3 q(f).
template <bool kFma>
[[gnu::always_inline]] inline float log_of(float x) {
  constexpr uint32_t kSqrtHalf = 0x3F3504F3;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool is_subnormal = x < 0x1p-126F;
  const float normal = is_subnormal ? x * 0x1p24F : x;
  const auto bits = std::bit_cast<uint32_t>(normal);
  const uint32_t exponent = (bits - kSqrtHalf) & 0xFF800000U;
  const float f = std::bit_cast<float>(bits - exponent) - 1;
  const float k = static_cast<float>(static_cast<int32_t>(exponent) >> 23) - (is_subnormal ? 24.0F : 0.0F);
  const float f2 = f * f;
  const float q = polynomial<kFma>(f, 0x1.555546p-2F, -0x1.ffffeep-3F, 0x1.99a546p-3F, -0x1.5562e4p-3F, 0x1.2332c2p-3F,
                                   -0x1.fb4318p-4F, 0x1.e65064p-4F, -0x1.e2e9fp-4F, 0x1.1b439p-4F);
  const float tail = multiply_add<kFma>(f2 * f, q, k * 0x1.7f7d1cp-20F);
  const float log = multiply_add<kFma>(k, 0x1.62e4p-1F, f - (0.5F * f2 - tail));
  const float edge = x == 0 ? -kInfinity : x < 0 ? std::numeric_limits<float>::quiet_NaN() : x;
  return x > 0 && x < kInfinity ? log : edge;
}

/// All ones where `condition` holds: several conditions joined by bits are no branches to the compiler.
[[gnu::always_inline]] inline uint32_t mask_of(bool condition) { return condition ? ~0U : 0U; }
[[gnu::always_inline]] inline float selected(uint32_t mask, float one, float other) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(one) & mask) | (std::bit_cast<uint32_t>(other) & ~mask));
}

/// log2 x of the positive float x: x = 2^k m with m in [sqrt(1/2), sqrt(2)), log2 m = s p(s^2) with s = (m - 1) /
/// (m + 1). The relative error is below 2^-45. Of 0 and infinity it is a finite number.
template <bool kFma>
[[gnu::always_inline]] inline double log2_in_double(float x) {
  constexpr uint64_t kSqrtHalf = 0x3FE6A09E667F3BCD;
  constexpr uint64_t kOne = 0x3FF0000000000000;
  constexpr uint64_t kExponent = 0xFFF0000000000000;
  const auto bits = std::bit_cast<uint64_t>(double{x});
  const uint64_t from_sqrt_half = bits - kSqrtHalf + kOne;
  const double m = std::bit_cast<double>(bits - (from_sqrt_half & kExponent) + kOne);
  // The exponent as the low bits of a number that is large enough to have no others.
  constexpr double kLarge = 0x1p52;
  const double k = std::bit_cast<double>((from_sqrt_half >> 52) | std::bit_cast<uint64_t>(kLarge)) - (kLarge + 1023);
  const double s = (m - 1) / (m + 1);
  const double p = polynomial<kFma>(s * s, 0x1.71547652b8251p+1, 0x1.ec709dc53c66bp-1, 0x1.2776c2933ecdcp-1,
                                    0x1.a61a2ec9b1b2bp-2, 0x1.47955635813fbp-2, 0x1.21b0ea97e634ap-2);
  return multiply_add<kFma>(s, p, k);
}

/// 2^x as a float, from x in double; the relative error is below 2^-34.
template <bool kFma>
[[gnu::always_inline]] inline float exp2_of(double x) {
  const double low = x < -160 ? -160 : x;
  const double in = low > 160 ? 160 : low;
  const double shifted = in + kNoFraction<double>;
  const double r = in - (shifted - kNoFraction<double>);
  const double e =
      polynomial<kFma>(r, 0x1.ffffffffabbb6p-1, 0x1.62e42ff116242p-1, 0x1.ebfbe0a4bf5b3p-3, 0x1.c6b08aaf31573p-5,
                       0x1.3b29dc404cc60p-7, 0x1.5d8a708532d62p-10, 0x1.446a2038552f2p-13, 0x1.fe1788f3cc4acp-17);
  const double scale = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) << 52) + std::bit_cast<uint64_t>(1.0));
  return static_cast<float>(e * scale);
}

/// base^exponent = 2^(exponent log2 |base|), and what pow of C gives for zeros, ones, infinities, NaN and the powers of
/// negative numbers.
template <bool kFma>
[[gnu::always_inline]] inline float power_of(float base, float exponent) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const float x = std::fabs(base);
  const float inner = exp2_of<kFma>(double{exponent} * log2_in_double<kFma>(x));
  // Where x is 0 or infinite the sign of the exponent says the result; where it is 1 the exponent may be infinite.
  const float growth = x > 1 ? exponent : -exponent;
  const float edge = growth > 0 ? kInfinity : 0.0F;
  const float outer = x == 1 ? 1.0F : edge;
  const uint32_t is_outer = mask_of(x == 0) | mask_of(x == 1) | mask_of(x == kInfinity);
  const float magnitude = selected(is_outer, outer, inner);
  // Floats of 2^24 and more are even.
  const float size = std::fabs(exponent);
  const float counted = size < 0x1p25F ? size : 0x1p25F;
  const auto integer = static_cast<int32_t>(counted);
  const uint32_t is_whole = mask_of(static_cast<float>(integer) == counted);
  const uint32_t sign = std::bit_cast<uint32_t>(base) & (static_cast<uint32_t>(integer) << 31) & is_whole;
  const float with_sign = std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  const uint32_t has_none = mask_of(base < 0) & mask_of(base != -kInfinity) & ~is_whole;
  const uint32_t is_nan = has_none | mask_of(base != base) | mask_of(exponent != exponent);
  const uint32_t is_one = mask_of(base == 1) | mask_of(exponent == 0);
  return selected(is_one, 1.0F, selected(is_nan, kNaN, with_sign));
}

/// erf_inv x = x p(w) with w = -log(1 - x^2) below 5, else x p(sqrt(w)) (Giles 2010). The constant terms have two
/// parts, and the larger one is added last.
template <bool kFma>
[[gnu::always_inline]] inline float erf_inv_of(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float rest_of_one = 0;
  if constexpr (kFma)
    rest_of_one = std::fma(-x, x, 1.0F);
  else
    rest_of_one = (1 - x) * (1 + x);
  const float w = -log_of<kFma>(rest_of_one);
  const float u = w - 0.5F;
  const float near =
      polynomial<kFma>(u, -0x1.c1ad6ap-25F, 0x1.ef212ap-3F, 0x1.035556p-7F, -0x1.43fd12p-9F, -0x1.28d36p-17F,
                       0x1.8f6fa6p-15F, -0x1.8d2468p-20F, -0x1.3a75fcp-20F, 0x1.85b4aep-23F, -0x1.2e0e96p-27F);
  const float v = std::sqrt(w) - 3;
  const float far =
      polynomial<kFma>(v, -0x1.80c6d6p-26F, 0x1.006dc8p+0F, 0x1.358424p-7F, -0x1.f4a808p-8F, 0x1.7473dp-8F,
                       -0x1.d62754p-9F, 0x1.882144p-10F, -0x1.415d96p-14F, -0x1.4e34aep-12F, 0x1.0e751ep-13F);
  const bool is_near = w < 5;
  const float inner = multiply_add<kFma>(x, is_near ? 0x1.013c1p+0F : 0x1.6a9efcp+1F, x * (is_near ? near : far));
  return std::copysign(w == kInfinity ? kInfinity : inner, x);  // of -0 the sum is +0
}

}  // namespace meshd::kernels
