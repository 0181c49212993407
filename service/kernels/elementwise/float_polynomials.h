// Exponentials and logarithms as polynomials, for loops that the compiler vectorises: no branches, no tables. With FMA
// (levels kV3 and kV4) a product and a sum are one rounding, else two; the bits of one level are the same in loops and
// in generated code. Largest errors in units in the last place, over 2 million floats and 450,000 doubles:
//   exp_of       float 0.95, 0.96 with FMA   double 0.97 with FMA, else the library's
//   log_of       float 0.77
//   logistic_of  float 2.1, 1.4 with FMA     double 2.2, 1.4 with FMA
// Polynomials are minimax ones of the relative error (Remez), their coefficients rounded to the type.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace meshd::kernels {

/// a * b + c
template <bool kFma, class T>
[[gnu::always_inline]] inline T multiply_add(T a, T b, T c) {
  if constexpr (kFma) {
    return std::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

/// first + rest[0] x + rest[1] x^2 + ... by Horner's rule. No loop: the loop around it must have none to be vectorised.
template <bool kFma, class T>
[[gnu::always_inline]] inline T polynomial(T /*x*/, T first) {
  return first;
}
template <bool kFma, class T, class... Rest>
[[gnu::always_inline]] inline T polynomial(T x, T first, Rest... rest) {
  return multiply_add<kFma>(polynomial<kFma>(x, rest...), x, first);
}

/// Adding it leaves a whole number, |x| below 2^22 (float) or 2^51 (double), in the low bits of the sum: numbers this
/// large have no bits behind the point.
template <class T>
inline constexpr T kNoFraction = sizeof(T) == 4 ? T{0x1.8p23} : T{0x1.8p52};

/// (1 + p) 2^k for the k that is in the low bits of `shifted`, in two steps, so that results below the normal range are
/// rounded once and those above it are infinite: k has one exponent bit more than T.
template <class T>
[[gnu::always_inline]] inline T scaled_up(T p, T shifted) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kMantissaBits = std::numeric_limits<T>::digits - 1;
  constexpr Bits kBias = std::numeric_limits<T>::max_exponent - 1;
  constexpr Bits kStep = (kBias + 1) / 2;
  const bool is_small = shifted < kNoFraction<T>;
  const Bits bias = is_small ? kBias + kStep : kBias - kStep;
  const T step = is_small ? std::bit_cast<T>((kBias - kStep) << kMantissaBits)
                          : std::bit_cast<T>((kBias + kStep) << kMantissaBits);
  return (1 + p) * std::bit_cast<T>((std::bit_cast<Bits>(shifted) + bias) << kMantissaBits) * step;
}

/// e^x = 2^k e^r with k whole and |r| at most log(2) / 2 (Cody and Waite: log 2 in two parts, so that r is nearly
/// exact); e^r = 1 + r + r^2 q(r).
template <bool kFma>
[[gnu::always_inline]] inline float exp_of(float x) {
  const float low = x < -104.0F ? -104.0F : x;  // NaN stays
  const float in = low > 89.0F ? 89.0F : low;
  const float shifted = multiply_add<kFma>(in, 0x1.715476p0F, kNoFraction<float>);
  const float k = shifted - kNoFraction<float>;
  const float r = multiply_add<kFma>(k, -0x1.7f7d1cp-20F, multiply_add<kFma>(k, -0x1.62e4p-1F, in));
  const float q =
      polynomial<kFma>(r, 0.5F, 0x1.555556p-3F, 0x1.55548p-5F, 0x1.11107ep-7F, 0x1.6d9656p-10F, 0x1.a1b7ep-13F);
  const float p = multiply_add<kFma>(r * r, q, r);
  return scaled_up(p, shifted);
}

template <bool kFma>
[[gnu::always_inline]] inline double exp_of(double x) {
  if constexpr (!kFma) return std::exp(x);
  const double low = x < -746.0 ? -746.0 : x;
  const double in = low > 710.0 ? 710.0 : low;
  const double shifted = std::fma(in, 0x1.71547652b82fep0, kNoFraction<double>);
  const double k = shifted - kNoFraction<double>;
  const double r = std::fma(k, -0x1.abc9e3b39803fp-56, std::fma(k, -0x1.62e42fefa39efp-1, in));
  const double q =
      polynomial<true>(r, 0.5, 0x1.555555555555cp-3, 0x1.555555555555ep-5, 0x1.111111110ebc8p-7, 0x1.6c16c16c135bfp-10,
                       0x1.a01a01b3b44bap-13, 0x1.a01a01b4495bfp-16, 0x1.71ddefa26d471p-19, 0x1.27e4bf450c716p-22,
                       0x1.af6cb6797cdb6p-26, 0x1.1f9dd566c739dp-29);
  const double p = std::fma(r * r, q, r);
  return scaled_up(p, shifted);
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

/// 1 / (1 + e^-x), through e^-|x| so that tails keep their precision. With FMA the quotient gets back what rounding the
/// denominator and the division lost.
template <bool kFma, class T>
[[gnu::always_inline]] inline T logistic_of(T x) {
  const T e = exp_of<kFma>(-std::fabs(x));
  const T numerator = x < 0 ? e : T{1};
  const T denominator = 1 + e;
  const T quotient = numerator / denominator;
  if constexpr (!kFma) return quotient;
  const T lost = e - (denominator - 1);
  const T rest = std::fma(-quotient, lost, std::fma(-quotient, denominator, numerator));
  return std::fma(rest, x < 0 ? 1 - quotient : quotient, quotient);
}

}  // namespace meshd::kernels
