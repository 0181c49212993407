// Elementwise functions of float and double as types with a static apply, for the loops of lane_loop.h. Written without
// branches where the loop should vectorise. Special values are IEEE 754's; where it leaves a choice, XLA's results.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "service/kernels/elementwise/functors/double_functions.h"
#include "service/kernels/elementwise/functors/float_polynomials.h"
#include "service/kernels/elementwise/functors/special_functions.h"
#include "service/kernels/elementwise/functors/vector_math.h"

namespace meshd::kernels {

template <class T>
constexpr T with_sign_of(T magnitude, T sign) {
  const auto bits = std::bit_cast<FloatBits<T>>(magnitude) & ~kSignBit<T>;
  return std::bit_cast<T>(static_cast<FloatBits<T>>(bits | (std::bit_cast<FloatBits<T>>(sign) & kSignBit<T>)));
}

template <class T>
constexpr T magnitude_of(T x) {
  return std::bit_cast<T>(static_cast<FloatBits<T>>(std::bit_cast<FloatBits<T>>(x) & ~kSignBit<T>));
}

/// Integers in the order -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
template <class T>
constexpr SignedBits<T> total_order_key(T x) {
  const auto bits = std::bit_cast<SignedBits<T>>(x);
  return static_cast<SignedBits<T>>(bits ^ ((bits >> (sizeof(T) * 8 - 1)) & std::numeric_limits<SignedBits<T>>::max()));
}

// --- exact and correctly rounded ---

template <class T>
struct Absolute {
  static T apply(T x) { return magnitude_of(x); }
};
template <class T>
struct Negate {
  static T apply(T x) {
    return std::bit_cast<T>(static_cast<FloatBits<T>>(std::bit_cast<FloatBits<T>>(x) ^ kSignBit<T>));
  }
};
template <class T>
struct Sign {
  static T apply(T x) {
    const T unit = with_sign_of(T{1}, x);
    return magnitude_of(x) > T{0} ? unit : x;  // zeros and NaN stay what they are
  }
};
template <class T>
struct Sqrt {
  static T apply(T x) { return std::sqrt(x); }
};
template <class T>
struct Floor {
  static T apply(T x) { return std::floor(x); }
};
template <class T>
struct Ceil {
  static T apply(T x) { return std::ceil(x); }
};
template <class T>
struct RoundEven {
  static T apply(T x) { return std::rint(x); }
};
template <class T>
struct RoundAway {
  static T apply(T x) {
    const T whole = std::trunc(x);
    const T more = magnitude_of(x - whole) >= T(0.5) ? T{1} : T{0};
    return with_sign_of(magnitude_of(whole) + more, x);
  }
};
template <class T>
struct IsFinite {
  static uint8_t apply(T x) { return magnitude_of(x) <= std::numeric_limits<T>::max() ? 1 : 0; }
};
template <class T>
struct Add {
  static T apply(T a, T b) { return a + b; }
};
template <class T>
struct Subtract {
  static T apply(T a, T b) { return a - b; }
};
template <class T>
struct Multiply {
  static T apply(T a, T b) { return a * b; }
};
template <class T>
struct Square {
  static T apply(T a) { return a * a; }
};
template <class T>
struct Divide {
  static T apply(T a, T b) { return a / b; }
};
/// NaN if either is; -0 < +0.
template <class T>
struct Maximum {
  static T apply(T a, T b) {
    const T larger = a > b ? a : b;  // b where b is NaN
    const T equal =
        std::bit_cast<T>(static_cast<FloatBits<T>>(std::bit_cast<FloatBits<T>>(a) & std::bit_cast<FloatBits<T>>(b)));
    const T ordered = a == b ? equal : larger;
    return a != a ? a : ordered;
  }
};
template <class T>
struct Minimum {
  static T apply(T a, T b) {
    const T smaller = a < b ? a : b;  // b where b is NaN
    const T equal =
        std::bit_cast<T>(static_cast<FloatBits<T>>(std::bit_cast<FloatBits<T>>(a) | std::bit_cast<FloatBits<T>>(b)));
    const T ordered = a == b ? equal : smaller;
    return a != a ? a : ordered;
  }
};
template <class T>
struct Clamp {
  static T apply(T low, T x, T high) { return Minimum<T>::apply(Maximum<T>::apply(low, x), high); }
};
/// The neighbour of `from` towards `to`.
template <class T>
struct NextAfter {
  static T apply(T from, T to) {
    const auto bits = std::bit_cast<FloatBits<T>>(from);
    const bool grows = (from < to) == (from > T{0});
    const auto stepped = std::bit_cast<T>(static_cast<FloatBits<T>>(grows ? bits + 1 : bits - 1));
    const T from_zero = with_sign_of(std::numeric_limits<T>::denorm_min(), to);
    const T moved = from == T{0} ? from_zero : stepped;
    const T some = from == to ? to : moved;
    return (from != from) | (to != to) ? from + to : some;
  }
};
template <class T>
struct CompareEq {
  static uint8_t apply(T a, T b) { return a == b ? 1 : 0; }
};
template <class T>
struct CompareNe {
  static uint8_t apply(T a, T b) { return a != b ? 1 : 0; }
};
template <class T>
struct CompareLt {
  static uint8_t apply(T a, T b) { return a < b ? 1 : 0; }
};
template <class T>
struct CompareLe {
  static uint8_t apply(T a, T b) { return a <= b ? 1 : 0; }
};
template <class T>
struct CompareGt {
  static uint8_t apply(T a, T b) { return a > b ? 1 : 0; }
};
template <class T>
struct CompareGe {
  static uint8_t apply(T a, T b) { return a >= b ? 1 : 0; }
};
template <class T, template <class> class Compare>
struct TotalCompare {
  static uint8_t apply(T a, T b) { return Compare<SignedBits<T>>::apply(total_order_key(a), total_order_key(b)); }
};

// --- within a few units in the last place ---

// Functors with apply_fma are compiled to it where the processor has FMA (lane_loop.h). Functions of float whose vector
// form in the library is further from the exact value than XLA's go through double: then they are the nearest float,
// but where the exact value is all but half way between two. Functors with apply_library answer NaN from apply_fma
// where their recipe does not reach, and loops call the library there.

/// A function of the library on doubles. Of doubles themselves with FMA its recipe, and for the lanes where that
/// answers NaN the library's, which is not inlined: loops would call its vector form, which is up to 4 units off.
template <class T, auto kRecipe, decltype(kRecipe) kLibrary>
struct ThroughDoubles {
  template <std::same_as<T>... X>
  static T apply(X... x) {
    return static_cast<T>(kLibrary(double{x}...));
  }
  template <std::same_as<double>... X>
  requires std::is_same_v<T, double>
  static double apply_fma(X... x) { return kRecipe(x...); }
  template <std::same_as<double>... X>
  requires std::is_same_v<T, double>
  [[gnu::noinline]] static double apply_library(X... x) { return kLibrary(x...); }
};

template <class T>
struct Exp {
  static T apply(T x) { return exp_of<false>(x); }
  static T apply_fma(T x) { return exp_of<true>(x); }
};
template <class T>
struct Logistic {
  static T apply(T x) { return logistic_of<false>(x); }
  static T apply_fma(T x) { return logistic_of<true>(x); }
};
template <class T>
struct Log {
  static T apply(T x) { return std::log(x); }
};
template <>
struct Log<double> : ThroughDoubles<double, log_of_double, std::log> {};
template <>
struct Log<float> {
  static float apply(float x) { return log_of<false>(x); }
  static float apply_fma(float x) { return log_of<true>(x); }
};
template <class T>
struct Rsqrt {
  static T apply(T x) { return static_cast<T>(1 / std::sqrt(double{x})); }
};
template <>
struct Rsqrt<double> {
  static double apply(double x) { return 1 / std::sqrt(x); }
  static double apply_fma(double x) { return rsqrt_of_double(x); }
};
template <class T>
struct Cbrt {
  static T apply(T x) { return static_cast<T>(std::cbrt(double{x})); }
};
template <class T>
using Sin = ThroughDoubles<T, sin_of_double, std::sin>;
template <class T>
using Cos = ThroughDoubles<T, cos_of_double, std::cos>;
template <class T>
using Tan = ThroughDoubles<T, tan_of_double, std::tan>;
template <class T>
struct Erf {
  static T apply(T x) { return std::erf(x); }
};
template <>
struct Erf<float> {
  static float apply(float x) { return erf_of<false>(x); }
  static float apply_fma(float x) { return erf_of<true>(x); }
};
template <>
struct Erf<double> : ThroughDoubles<double, erf_of_double, std::erf> {};
template <class T>
struct ErfInv {
  static T apply(T x) { return static_cast<T>(erf_inv(x)); }
};
template <>
struct ErfInv<float> {
  static float apply(float x) { return erf_inv_of<false>(x); }
  static float apply_fma(float x) { return erf_inv_of<true>(x); }
};
template <class T>
using Asin = ThroughDoubles<T, asin_of_double, std::asin>;
template <class T>
using Acos = ThroughDoubles<T, acos_of_double, std::acos>;
template <class T>
using Atan = ThroughDoubles<T, atan_of_double, std::atan>;
template <class T>
struct Power {
  static T apply(T a, T b) { return std::pow(a, b); }
};
template <>
struct Power<double> : ThroughDoubles<double, power_of_double, std::pow> {};
template <>
struct Power<float> {
  static float apply(float a, float b) { return power_of<false>(a, b); }
  static float apply_fma(float a, float b) { return power_of<true>(a, b); }
};
template <class T>
using Atan2 = ThroughDoubles<T, atan2_of_double, std::atan2>;
template <class T>
struct Expm1 {
  static T apply(T x) { return std::expm1(x); }
};
template <class T>
struct Log1p {
  static T apply(T x) { return std::log1p(x); }
};
template <class T>
struct Tanh {
  static T apply(T x) { return std::tanh(x); }
};
template <>
struct Tanh<float> {
  static float apply(float x) { return tanh_of<false>(x); }
  static float apply_fma(float x) { return tanh_of<true>(x); }
};
template <class T>
struct Erfc {
  static T apply(T x) { return std::erfc(x); }
};
template <class T>
struct Sinh {
  static T apply(T x) { return std::sinh(x); }
};
template <class T>
struct Cosh {
  static T apply(T x) { return std::cosh(x); }
};
template <class T>
struct Asinh {
  static T apply(T x) { return std::asinh(x); }
};
template <class T>
struct Acosh {
  static T apply(T x) { return std::acosh(x); }
};
template <class T>
struct Atanh {
  static T apply(T x) { return std::atanh(x); }
};
template <class T>
struct Remainder {
  static T apply(T a, T b) { return std::fmod(a, b); }
};

}  // namespace meshd::kernels
