// Modified Bessel functions of order 0 and 1, exponentially scaled, as Chebyshev series: in long double for doubles,
// and in double, as far as a float needs them, for loops over floats that the compiler vectorises.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace meshd::kernels {

/// Coefficients, highest first: exp(-x) I0(x) and exp(-x) I1(x) / x on [0, 8] in x / 4 - 1; exp(-x) sqrt(x) I(x) on
/// [8, inf) in 16 / x - 1. Made with 40 digits of precision.
namespace bessel {

inline constexpr double kSplit = 8;
inline constexpr std::array<double, 29> kI0Small = {
    3.3307945188222381e-17,   -2.43127984654795469e-16, 1.71539128555513303e-15, -1.16853328779934517e-14,
    7.67618549860493562e-14,  -4.85644678311192946e-13, 2.95505266312963983e-12, -1.72682629144155571e-11,
    9.67580903537323691e-11,  -5.18979560163526291e-10, 2.65982372468238665e-9,  -1.30002500998624804e-8,
    6.04699502254191895e-8,   -2.67079385394061173e-7,  1.11738753912010372e-6,  -4.41673835845875056e-6,
    0.0000164484480707288971, -0.000057541950100821037, 0.000188502885095841656, -0.000576375574538582366,
    0.0016394756169413358,    -0.00432430999505057594,  0.0105464603945949983,   -0.0237374148058994688,
    0.0493052842396707085,    -0.0949010970480476444,   0.171620901522208775,    -0.304682672343198399,
    0.676795274409476085,
};
inline constexpr std::array<double, 23> kI0Large = {
    4.46562142029676e-17,     3.46122286769746109e-17,  -2.82762398051658348e-16, -3.42548561967721913e-16,
    1.77256013305652638e-15,  3.81168066935262242e-15,  -9.55484669882830765e-15, -4.15056934728722209e-14,
    1.54008621752140983e-14,  3.8527783827421427e-13,   7.18012445138366623e-13,  -1.79417853150680612e-12,
    -1.32158118404477131e-11, -3.14991652796324136e-11, 1.18891471078464383e-11,  4.94060238822496959e-10,
    3.39623202570838635e-9,   2.26666899049817806e-8,   2.04891858946906374e-7,   2.89137052083475648e-6,
    0.0000688975834691682398, 0.00336911647825569409,   0.804490411014108832,
};
inline constexpr std::array<double, 28> kI1Small = {
    -2.11142121435816608e-17,  1.55363195773620047e-16,  -1.10559694773538631e-15, 7.60068429473540693e-15,
    -5.04218550472791169e-14,  3.22379336594557471e-13,  -1.98397439776494372e-12, 1.17361862988909016e-11,
    -6.66348972350202774e-11,  3.62559028155211704e-10,  -1.88724975172282929e-9,  9.38153738649577178e-9,
    -4.44505912879632808e-8,   2.00329475355213526e-7,   -8.56872026469545474e-7,  3.47025130813767848e-6,
    -0.0000132731636560394358, 0.0000478156510755005423, -0.000161760815825896746, 0.000512285956168575773,
    -0.00151357245063125315,   0.00415642294431288816,   -0.0105640848946261982,   0.0247264490306265168,
    -0.0529459812080949914,    0.102643658689847095,     -0.176416518357834055,    0.252587186443633655,
};
inline constexpr std::array<double, 23> kI1Large = {
    -4.65030536848935833e-17, -3.20952592199342396e-17, 2.96262899764595014e-16,  3.30820231092092828e-16,
    -1.88035477551078245e-15, -3.8144030724370078e-15,  1.04202769841288028e-14,  4.27244001671195135e-14,
    -2.10154184277266431e-14, -4.08355111109219732e-13, -7.19855177624590851e-13, 2.03562854414708951e-12,
    1.41258074366137813e-11,  3.25260358301548824e-11,  -1.89749581235054123e-11, -5.58974346219658381e-10,
    -3.83538038596423702e-9,  -2.63146884688951951e-8,  -2.51223623787020893e-7,  -3.88256480887769039e-6,
    -0.000110588938762623716, -0.00976109749136146841,  0.77857623501828012,
};
/// Coefficients in front of these are less than 1e-8 of the sums.
inline constexpr size_t kFirstSmallOfFloat = 9;
inline constexpr size_t kFirstLargeOfFloat = 15;

/// Clenshaw's sum of a Chebyshev series; the lowest coefficient counts half. In long double: the sum cancels near its
/// ends.
template <size_t kCount>
long double series(const std::array<double, kCount>& coefficients, long double t) {
  long double b0 = 0;
  long double b1 = 0;
  long double b2 = 0;
  for (const double coefficient : coefficients) {
    b2 = b1;
    b1 = b0;
    b0 = 2 * t * b1 - b2 + coefficient;
  }
  return (b0 - b2) / 2;
}

/// The same in double with FMA, from coefficient kFirst on; unrolled, so that a loop over lanes around it vectorises.
template <size_t kFirst, size_t kCount>
[[gnu::always_inline]] inline double short_series(const std::array<double, kCount>& coefficients, double t) {
  double b0 = 0;
  double b1 = 0;
  double b2 = 0;
  const double twice = 2 * t;
  [&]<size_t... kNumber>(std::index_sequence<kNumber...>) __attribute__((always_inline)) {
    ((b2 = b1, b1 = b0, b0 = __builtin_fma(twice, b1, coefficients[kFirst + kNumber] - b2)), ...);
  }
  (std::make_index_sequence<kCount - kFirst>{});
  return (b0 - b2) / 2;
}

/// A function of floats from its two series; that of order 1 is odd. Errors are those of the last rounding.
template <bool kIsOdd, size_t kSmallCount, size_t kLargeCount>
[[gnu::always_inline]] inline float scaled(const std::array<double, kSmallCount>& small,
                                           const std::array<double, kLargeCount>& large, float x) {
  const double magnitude = __builtin_fabs(static_cast<double>(x));
  const double near = short_series<kFirstSmallOfFloat>(small, magnitude / 4 - 1) * (kIsOdd ? magnitude : 1.0);
  const double far = short_series<kFirstLargeOfFloat>(large, 16 / magnitude - 1) / __builtin_sqrt(magnitude);
  const auto result = static_cast<float>(magnitude <= kSplit ? near : far);
  return kIsOdd ? __builtin_copysignf(result, x) : result;
}

}  // namespace bessel

/// exp(-|x|) I0(x).
template <class T>
struct BesselI0e {
  static T apply(T x) {
    const long double magnitude = std::fabs(x);
    if (magnitude <= bessel::kSplit) return static_cast<T>(bessel::series(bessel::kI0Small, magnitude / 4 - 1));
    return static_cast<T>(bessel::series(bessel::kI0Large, 16 / magnitude - 1) / std::sqrt(magnitude));
  }
};
template <>
struct BesselI0e<float> {
  static float apply(float x) { return static_cast<float>(BesselI0e<double>::apply(x)); }
  [[gnu::always_inline]] static float apply_fma(float x) {
    return bessel::scaled<false>(bessel::kI0Small, bessel::kI0Large, x);
  }
};

/// exp(-|x|) I1(x).
template <class T>
struct BesselI1e {
  static T apply(T x) {
    const long double magnitude = std::fabs(x);
    if (magnitude <= bessel::kSplit) return static_cast<T>(bessel::series(bessel::kI1Small, magnitude / 4 - 1) * x);
    return std::copysign(static_cast<T>(bessel::series(bessel::kI1Large, 16 / magnitude - 1) / std::sqrt(magnitude)),
                         x);
  }
};
template <>
struct BesselI1e<float> {
  static float apply(float x) { return static_cast<float>(BesselI1e<double>::apply(x)); }
  [[gnu::always_inline]] static float apply_fma(float x) {
    return bessel::scaled<true>(bessel::kI1Small, bessel::kI1Large, x);
  }
};

}  // namespace meshd::kernels
