// Elementwise functions of complex numbers as types with a static apply. Arithmetic is written out, part by part, as
// XLA does it; complex64 functions go through double, which makes them right to the last place but one, and so do
// quotients, powers and some functions of complex128 through long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "service/kernels/elementwise/functors/double_functions.h"
#include "service/kernels/elementwise/functors/float_polynomials.h"

namespace meshd::kernels {

/// Two parts in memory, the layout of StableHLO's complex<T>.
template <class T>
struct ComplexPair {
  T re;
  T im;
  /// Of a value and itself: whether a part is NaN.
  friend bool operator!=(ComplexPair a, ComplexPair b) { return (a.re != b.re) | (a.im != b.im); }
};

template <class T>
std::complex<double> to_double(ComplexPair<T> z) {
  return {static_cast<double>(z.re), static_cast<double>(z.im)};
}
template <class T>
ComplexPair<T> from_double(const std::complex<double>& z) {
  return {static_cast<T>(z.real()), static_cast<T>(z.imag())};
}

/// The real type that functions of complex<T> go through.
template <class T>
using WideReal = std::conditional_t<sizeof(T) == sizeof(float), double, long double>;
template <class T>
std::complex<WideReal<T>> to_wide(ComplexPair<T> z) {
  return {static_cast<WideReal<T>>(z.re), static_cast<WideReal<T>>(z.im)};
}
template <class T>
ComplexPair<T> from_wide(const std::complex<WideReal<T>>& z) {
  return {static_cast<T>(z.real()), static_cast<T>(z.imag())};
}

template <class T>
struct ComplexReal {
  static T apply(ComplexPair<T> z) { return z.re; }
};
template <class T>
struct ComplexImag {
  static T apply(ComplexPair<T> z) { return z.im; }
};
template <class T>
struct ComplexConj {
  static ComplexPair<T> apply(ComplexPair<T> z) { return {z.re, -z.im}; }
};
template <class T>
struct ComplexNegate {
  static ComplexPair<T> apply(ComplexPair<T> z) { return {-z.re, -z.im}; }
};
template <class T>
struct MakeComplex {
  static ComplexPair<T> apply(T re, T im) { return {re, im}; }
};
template <class T>
struct ComplexAdd {
  static ComplexPair<T> apply(ComplexPair<T> a, ComplexPair<T> b) { return {a.re + b.re, a.im + b.im}; }
};
template <class T>
struct ComplexSubtract {
  static ComplexPair<T> apply(ComplexPair<T> a, ComplexPair<T> b) { return {a.re - b.re, a.im - b.im}; }
};
template <class T>
struct ComplexMultiply {
  static ComplexPair<T> apply(ComplexPair<T> a, ComplexPair<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
template <class T>
struct ComplexSquare {
  /// XLA's formula: no digits are lost where the squares of the parts cancel, and neither of them overflows there.
  static ComplexPair<T> apply(ComplexPair<T> z) {
    const T real = (z.re - z.im) * (z.re + z.im);
    const T product = z.re * z.im;
    return {std::abs(z.re) == std::abs(z.im) && std::abs(z.re) < std::numeric_limits<T>::infinity() ? T{0} : real,
            product + product};
  }
};
template <class T>
struct ComplexEq {
  static uint8_t apply(ComplexPair<T> a, ComplexPair<T> b) { return (a.re == b.re) & (a.im == b.im) ? 1 : 0; }
};
template <class T>
struct ComplexNe {
  static uint8_t apply(ComplexPair<T> a, ComplexPair<T> b) { return (a.re != b.re) | (a.im != b.im) ? 1 : 0; }
};

/// XLA's formula, which conformance holds to the bit: max * sqrt(1 + (min / max)^2), the sum rounded once. Selections
/// instead of branches, so that lanes are computed side by side.
template <class T>
struct ComplexAbs {
  static T apply(ComplexPair<T> z) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const T re = std::abs(z.re);
    const T im = std::abs(z.im);
    const T larger = re > im ? re : im;
    const T smaller = re > im ? im : re;
    const T ratio = smaller / larger;  // NaN where both are zero or infinite
    const T magnitude = larger * std::sqrt(std::fma(ratio, ratio, T{1}));
    const T finite = larger == 0 ? T{0} : magnitude;
    const T number = (re != re) | (im != im) ? std::numeric_limits<T>::quiet_NaN() : finite;
    return (re == kInfinity) | (im == kInfinity) ? kInfinity : number;
  }
};
template <class T>
struct ComplexSign {
  static ComplexPair<T> apply(ComplexPair<T> z) {
    const T magnitude = ComplexAbs<T>::apply(z);
    if (magnitude == 0) return {T{0}, T{0}};
    return {z.re / magnitude, z.im / magnitude};
  }
};
template <class T>
struct ComplexDivide {
  static ComplexPair<T> apply(ComplexPair<T> a, ComplexPair<T> b) { return from_wide<T>(to_wide(a) / to_wide(b)); }
};

// --- complex64 with FMA: straight lines of doubles, in which no product of floats overflows or is rounded. What they
// --- answer NaN for (zeros, infinities and NaNs that matter) is left to the library.

/// Functions of some steps are a loop for each step over a block of lanes, whose parts are apart: a loop of all of them
/// over pairs would stay scalar.
template <int64_t kLanes>
struct DoubleLanes {
  alignas(64) double lanes[kLanes];
};
template <int64_t kLanes>
[[gnu::always_inline]] inline void apart(const ComplexPair<float>* z, DoubleLanes<kLanes>& re,
                                         DoubleLanes<kLanes>& im) {
  for (int64_t j = 0; j < kLanes; ++j) {
    re.lanes[j] = z[j].re;
    im.lanes[j] = z[j].im;
  }
}
template <int64_t kLanes>
[[gnu::always_inline]] inline void together(const DoubleLanes<kLanes>& re, const DoubleLanes<kLanes>& im,
                                            ComplexPair<float>* out) {
  for (int64_t j = 0; j < kLanes; ++j) out[j] = {static_cast<float>(re.lanes[j]), static_cast<float>(im.lanes[j])};
}

template <>
struct ComplexDivide<float> {
  using Pair = ComplexPair<float>;
  static Pair apply(Pair a, Pair b) { return apply_library(a, b); }
  static Pair apply_library(Pair a, Pair b) { return from_wide<float>(to_wide(a) / to_wide(b)); }
  template <int64_t kLanes>
  [[gnu::always_inline]] static inline void block_fma(const Pair* a, const Pair* b, Pair* out) {
    DoubleLanes<kLanes> re;
    DoubleLanes<kLanes> im;
    DoubleLanes<kLanes> c;
    DoubleLanes<kLanes> d;
    apart(a, re, im);
    apart(b, c, d);
    for (int64_t j = 0; j < kLanes; ++j) {
      const double scale = 1 / (c.lanes[j] * c.lanes[j] + d.lanes[j] * d.lanes[j]);
      const double along = (re.lanes[j] * c.lanes[j] + im.lanes[j] * d.lanes[j]) * scale;
      const double across = (im.lanes[j] * c.lanes[j] - re.lanes[j] * d.lanes[j]) * scale;
      re.lanes[j] = along;
      im.lanes[j] = across;
    }
    together(re, im, out);
  }
};

// --- functions of one complex<double>, which the C library has ---

// On a branch cut the C library takes the side that the sign of a zero names. XLA takes the upper side of the real axis
// and the right side of the imaginary one, whatever that sign is, in square roots and inverse functions but atan and
// atanh: a zero that is added makes -0 a +0.
template <std::complex<double> (*F)(const std::complex<double>&)>
std::complex<double> from_above(const std::complex<double>& z) {
  return F({z.real(), z.imag() + 0.0});
}
template <std::complex<double> (*F)(const std::complex<double>&)>
std::complex<double> from_the_right(const std::complex<double>& z) {
  return F({z.real() + 0.0, z.imag()});
}

template <class T>
struct ComplexSqrt {
  static ComplexPair<T> apply(ComplexPair<T> z) { return from_double<T>(from_above<std::sqrt<double>>(to_double(z))); }
};
/// One part is t = sqrt((|z| + |re|) / 2), the other one im / 2 t.
template <>
struct ComplexSqrt<float> {
  using Pair = ComplexPair<float>;
  static Pair apply(Pair z) { return apply_library(z); }
  static Pair apply_library(Pair z) { return from_double<float>(from_above<std::sqrt<double>>(to_double(z))); }
  template <int64_t kLanes>
  [[gnu::always_inline]] static inline void block_fma(const Pair* z, Pair* out) {
    DoubleLanes<kLanes> re;
    DoubleLanes<kLanes> im;
    apart(z, re, im);
    for (int64_t j = 0; j < kLanes; ++j) {
      const double x = re.lanes[j];
      const double y = im.lanes[j] + 0.0;
      const double t = std::sqrt(0.5 * (std::sqrt(x * x + y * y) + std::fabs(x)));
      const double other = std::fabs(y) / (t + t);
      const bool is_right = x >= 0;
      re.lanes[j] = chosen(is_right, t, other);
      im.lanes[j] = std::copysign(chosen(is_right, other, t), y);
    }
    together(re, im, out);
  }
};

template <class T>
struct ComplexExp {
  static ComplexPair<T> apply(ComplexPair<T> z) { return from_double<T>(std::exp(to_double(z))); }
};
template <>
struct ComplexExp<float> {
  using Pair = ComplexPair<float>;
  static Pair apply(Pair z) { return apply_library(z); }
  [[gnu::noinline]] static Pair apply_library(Pair z) { return from_double<float>(std::exp(to_double(z))); }
  template <int64_t kLanes>
  [[gnu::always_inline]] static inline void block_fma(const Pair* z, Pair* out) {
    DoubleLanes<kLanes> size;
    DoubleLanes<kLanes> angle;
    DoubleLanes<kLanes> cosine;
    apart(z, size, angle);
    for (double& lane : size.lanes) lane = exp_of<true>(lane);
    for (int64_t j = 0; j < kLanes; ++j) cosine.lanes[j] = size.lanes[j] * cos_of_double(angle.lanes[j]);
    for (int64_t j = 0; j < kLanes; ++j) angle.lanes[j] = size.lanes[j] * sin_of_double(angle.lanes[j]);
    together(cosine, angle, out);
  }
};

template <class T>
struct ComplexLog {
  static ComplexPair<T> apply(ComplexPair<T> z) { return from_double<T>(std::log(to_double(z))); }
};
/// Near the unit circle the logarithm of |z|^2 would have lost its digits.
template <>
struct ComplexLog<float> {
  using Pair = ComplexPair<float>;
  static Pair apply(Pair z) { return apply_library(z); }
  [[gnu::noinline]] static Pair apply_library(Pair z) { return from_double<float>(std::log(to_double(z))); }
  template <int64_t kLanes>
  [[gnu::always_inline]] static inline void block_fma(const Pair* z, Pair* out) {
    constexpr double kNear = 0x1p-20;
    DoubleLanes<kLanes> re;
    DoubleLanes<kLanes> im;
    DoubleLanes<kLanes> log;
    apart(z, re, im);
    for (int64_t j = 0; j < kLanes; ++j) {
      const double square = re.lanes[j] * re.lanes[j] + im.lanes[j] * im.lanes[j];
      log.lanes[j] = chosen(std::fabs(square - 1) < kNear, kUnknown, 0.5 * log_of_double(square));
    }
    for (int64_t j = 0; j < kLanes; ++j) {
      const double of_real = std::copysign(re.lanes[j] < 0 ? 0x1.921fb54442d18p+1 : 0.0, im.lanes[j]);
      const double angle = atan2_of_double(im.lanes[j], re.lanes[j]);
      re.lanes[j] = chosen((im.lanes[j] == 0) & (re.lanes[j] != 0), of_real, angle);
    }
    together(log, re, out);
  }
};

inline std::complex<double> complex_rsqrt(const std::complex<double>& z) { return 1.0 / std::sqrt(z); }
inline std::complex<double> complex_logistic(const std::complex<double>& z) { return 1.0 / (1.0 + std::exp(-z)); }
inline std::complex<double> complex_cbrt(const std::complex<double>& z) {
  return z == 0.0 ? z : std::pow(z, std::complex<double>(1.0 / 3.0));
}
/// cosh y and sinh y of a moderate y from one exponential, with digits to spare.
struct HyperbolicPair {
  long double cosh;
  long double sinh;
};
inline HyperbolicPair hyperbolic_pair(double y) {
  const long double e = std::exp(static_cast<long double>(y));
  const bool cancels = std::abs(y) < 0.5;
  return {(e + 1 / e) / 2, cancels ? std::sinh(static_cast<long double>(y)) : (e - 1 / e) / 2};
}
inline bool has_hyperbolic_pair(const std::complex<long double>& z) {
  constexpr long double kModerate = 700;
  return std::isfinite(z.real()) && std::abs(z.imag()) < kModerate;
}
/// sin z and cos z of parts that are doubles: the library's sines of double are within 0.55 units, its cosh and sinh
/// are not.
inline std::complex<long double> complex_sin(const std::complex<long double>& z) {
  if (!has_hyperbolic_pair(z)) return std::sin(z);
  const auto x = static_cast<double>(z.real());
  const HyperbolicPair y = hyperbolic_pair(static_cast<double>(z.imag()));
  return {std::sin(x) * y.cosh, std::cos(x) * y.sinh};
}
inline std::complex<long double> complex_cos(const std::complex<long double>& z) {
  if (!has_hyperbolic_pair(z)) return std::cos(z);
  const auto x = static_cast<double>(z.real());
  const HyperbolicPair y = hyperbolic_pair(static_cast<double>(z.imag()));
  return {std::cos(x) * y.cosh, -(std::sin(x) * y.sinh)};
}
/// exp(z) - 1 without cancellation near zero.
template <class Real>
std::complex<Real> complex_expm1(const std::complex<Real>& z) {
  if (z.imag() == 0) return {std::expm1(z.real()), z.imag()};
  const Real half_sine = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half_sine * half_sine, std::exp(z).imag()};
}
/// log(1 + z) without cancellation near zero: |1 + z|^2 - 1 is summed exactly enough with fma.
inline std::complex<double> complex_log1p(const std::complex<double>& z) {
  const double x = z.real();
  const double y = z.imag();
  const double angle = std::atan2(y, 1 + x);
  if (!(std::abs(x) < 2 && std::abs(y) < 2)) return {std::log(std::hypot(1 + x, y)), angle};
  const double xx = x * x;
  const double yy = y * y;
  const double rest = std::fma(x, x, -xx) + std::fma(y, y, -yy);
  // Terms in the order of their size, each sum's rounding error kept (Knuth).
  double sum = 2 * x;
  double error = rest;
  for (const double term : {xx, yy}) {
    const double next = sum + term;
    const double part = next - sum;
    error += (sum - (next - part)) + (term - part);
    sum = next;
  }
  // Near -1 the difference from 1 has the digits, and 1 + x is exact.
  if (sum < -0.5) return {std::log(std::hypot(1 + x, y)), angle};
  return {0.5 * std::log1p(sum + error), angle};
}
template <class Real>
std::complex<Real> complex_power(const std::complex<Real>& a, const std::complex<Real>& b) {
  if (b == Real{0}) return Real{1};
  if (a == Real{0} && b.real() > 0 && b.imag() == 0) return Real{0};
  return std::pow(a, b);
}

template <class T>
struct ComplexPower {
  static ComplexPair<T> apply(ComplexPair<T> a, ComplexPair<T> b) {
    return from_wide<T>(complex_power(to_wide(a), to_wide(b)));
  }
};

}  // namespace meshd::kernels
