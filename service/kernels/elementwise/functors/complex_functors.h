// Elementwise functions of complex numbers as types with a static apply. Arithmetic is written out, part by part, as
// XLA does it; complex64 functions go through double, which makes them right to the last place but one.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

namespace meshd::kernels {

/// Two parts in memory, the layout of StableHLO's complex<T>.
template <class T>
struct ComplexPair {
  T re;
  T im;
};

template <class T>
std::complex<double> to_double(ComplexPair<T> z) {
  return {static_cast<double>(z.re), static_cast<double>(z.im)};
}
template <class T>
ComplexPair<T> from_double(const std::complex<double>& z) {
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
  static ComplexPair<T> apply(ComplexPair<T> z) { return ComplexMultiply<T>::apply(z, z); }
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
  static ComplexPair<T> apply(ComplexPair<T> a, ComplexPair<T> b) {
    return from_double<T>(to_double(a) / to_double(b));
  }
};

// --- functions of one complex<double>, which the C library has ---

inline std::complex<double> complex_rsqrt(const std::complex<double>& z) { return 1.0 / std::sqrt(z); }
inline std::complex<double> complex_logistic(const std::complex<double>& z) { return 1.0 / (1.0 + std::exp(-z)); }
inline std::complex<double> complex_cbrt(const std::complex<double>& z) {
  return z == 0.0 ? z : std::pow(z, std::complex<double>(1.0 / 3.0));
}
/// exp(z) - 1 without cancellation near zero.
inline std::complex<double> complex_expm1(const std::complex<double>& z) {
  if (z.imag() == 0) return {std::expm1(z.real()), z.imag()};
  const double half_sine = std::sin(0.5 * z.imag());
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
inline std::complex<double> complex_power(const std::complex<double>& a, const std::complex<double>& b) {
  if (b == 0.0) return 1.0;
  if (a == 0.0 && b.real() > 0 && b.imag() == 0) return 0.0;
  return std::pow(a, b);
}

template <class T>
struct ComplexPower {
  static ComplexPair<T> apply(ComplexPair<T> a, ComplexPair<T> b) {
    return from_double<T>(complex_power(to_double(a), to_double(b)));
  }
};

}  // namespace meshd::kernels
