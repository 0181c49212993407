#include "service/kernels/elementwise/functors/special_functions.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

namespace meshd::kernels {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kDoubleInfinity = std::numeric_limits<double>::infinity();

/// Coefficients from the highest power down.
template <size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double sum = coefficients[0];
  for (size_t i = 1; i < N; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// Wichura's algorithm AS 241 for the normal quantile, rewritten for erf_inv: three rational approximations.
constexpr std::array<double, 8> kCentralTop = {
    2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
    1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080e+0};
constexpr std::array<double, 8> kCentralBottom = {
    5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
    5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0};
constexpr std::array<double, 8> kTailTop = {
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e+0,
    3.64784832476320460504e+0, 5.76949722146069140550e+0, 4.63033784615654529590e+0, 1.42343711074968357734e+0};
constexpr std::array<double, 8> kTailBottom = {
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0};
constexpr std::array<double, 8> kFarTop = {
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580e+0, 5.46378491116411436990e+0, 6.65790464350110377720e+0};
constexpr std::array<double, 8> kFarBottom = {
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2,  1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0};

// digamma on [1, 2] as (x - root) times a rational function; the root in three parts, so that it cancels exactly.
constexpr std::array<double, 6> kDigammaTop = {-0.0020713321167745952, -0.045251321448739056, -0.28919126444774784,
                                               -0.65031853770896507,   -0.32555031186804491,  0.25479851061131551};
constexpr std::array<double, 7> kDigammaBottom = {-0.55789841321675513e-6,
                                                  0.0021284987017821144,
                                                  0.054151797245674225,
                                                  0.43593529692665969,
                                                  1.4606242909763515,
                                                  2.0767117023730469,
                                                  1.0};

double digamma_between_1_and_2(double x) {
  constexpr double kRoot1 = 1569415565.0 / 1073741824.0;
  constexpr double kRoot2 = (381566830.0 / 1073741824.0) / 1073741824.0;
  constexpr double kRoot3 = 0.9016312093258695918615325266959189453125e-19;
  constexpr double kOffset = 0.99558162689208984;
  const double from_root = ((x - kRoot1) - kRoot2) - kRoot3;
  const double ratio = polynomial(kDigammaTop, x - 1) / polynomial(kDigammaBottom, x - 1);
  return from_root * kOffset + from_root * ratio;
}

double digamma_of_large(double x) {
  // Bernoulli numbers B(2k) / 2k, highest first.
  constexpr std::array<double, 8> kAsymptotic = {
      -0.443259803921568627451,   0.0833333333333333333333,   -0.0210927960927960927961,  0.00757575757575757575758,
      -0.00416666666666666666667, 0.003968253968253968253968, -0.00833333333333333333333, 0.0833333333333333333333};
  const double z = 1 / (x * x);
  return std::log(x) - 0.5 / x - z * polynomial(kAsymptotic, z);
}

// Chebyshev coefficients, highest first: exp(-x) I0(x) and exp(-x) I1(x) / x on [0, 8] in x / 4 - 1;
// exp(-x) sqrt(x) I(x) on [8, inf) in 16 / x - 1. Made with 40 digits of precision.
constexpr std::array<double, 29> kI0Small = {
    3.3307945188222381e-17,   -2.43127984654795469e-16, 1.71539128555513303e-15, -1.16853328779934517e-14,
    7.67618549860493562e-14,  -4.85644678311192946e-13, 2.95505266312963983e-12, -1.72682629144155571e-11,
    9.67580903537323691e-11,  -5.18979560163526291e-10, 2.65982372468238665e-9,  -1.30002500998624804e-8,
    6.04699502254191895e-8,   -2.67079385394061173e-7,  1.11738753912010372e-6,  -4.41673835845875056e-6,
    0.0000164484480707288971, -0.000057541950100821037, 0.000188502885095841656, -0.000576375574538582366,
    0.0016394756169413358,    -0.00432430999505057594,  0.0105464603945949983,   -0.0237374148058994688,
    0.0493052842396707085,    -0.0949010970480476444,   0.171620901522208775,    -0.304682672343198399,
    0.676795274409476085,
};
constexpr std::array<double, 23> kI0Large = {
    4.46562142029676e-17,     3.46122286769746109e-17,  -2.82762398051658348e-16, -3.42548561967721913e-16,
    1.77256013305652638e-15,  3.81168066935262242e-15,  -9.55484669882830765e-15, -4.15056934728722209e-14,
    1.54008621752140983e-14,  3.8527783827421427e-13,   7.18012445138366623e-13,  -1.79417853150680612e-12,
    -1.32158118404477131e-11, -3.14991652796324136e-11, 1.18891471078464383e-11,  4.94060238822496959e-10,
    3.39623202570838635e-9,   2.26666899049817806e-8,   2.04891858946906374e-7,   2.89137052083475648e-6,
    0.0000688975834691682398, 0.00336911647825569409,   0.804490411014108832,
};
constexpr std::array<double, 28> kI1Small = {
    -2.11142121435816608e-17,  1.55363195773620047e-16,  -1.10559694773538631e-15, 7.60068429473540693e-15,
    -5.04218550472791169e-14,  3.22379336594557471e-13,  -1.98397439776494372e-12, 1.17361862988909016e-11,
    -6.66348972350202774e-11,  3.62559028155211704e-10,  -1.88724975172282929e-9,  9.38153738649577178e-9,
    -4.44505912879632808e-8,   2.00329475355213526e-7,   -8.56872026469545474e-7,  3.47025130813767848e-6,
    -0.0000132731636560394358, 0.0000478156510755005423, -0.000161760815825896746, 0.000512285956168575773,
    -0.00151357245063125315,   0.00415642294431288816,   -0.0105640848946261982,   0.0247264490306265168,
    -0.0529459812080949914,    0.102643658689847095,     -0.176416518357834055,    0.252587186443633655,
};
constexpr std::array<double, 23> kI1Large = {
    -4.65030536848935833e-17, -3.20952592199342396e-17, 2.96262899764595014e-16,  3.30820231092092828e-16,
    -1.88035477551078245e-15, -3.8144030724370078e-15,  1.04202769841288028e-14,  4.27244001671195135e-14,
    -2.10154184277266431e-14, -4.08355111109219732e-13, -7.19855177624590851e-13, 2.03562854414708951e-12,
    1.41258074366137813e-11,  3.25260358301548824e-11,  -1.89749581235054123e-11, -5.58974346219658381e-10,
    -3.83538038596423702e-9,  -2.63146884688951951e-8,  -2.51223623787020893e-7,  -3.88256480887769039e-6,
    -0.000110588938762623716, -0.00976109749136146841,  0.77857623501828012,
};

/// Clenshaw's sum of a Chebyshev series; the lowest coefficient counts half. In long double: the sum cancels near its
/// ends.
long double chebyshev(std::span<const double> coefficients, long double t) {
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

constexpr double kBesselSplit = 8;

}  // namespace

double erf_inv(double y) {
  const double magnitude = std::fabs(y);
  if (!(magnitude < 1)) return magnitude == 1 ? std::copysign(kDoubleInfinity, y) : kNan;
  const double q = 0.5 * y;
  constexpr double kSqrtHalf = 0.70710678118654752440;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * kSqrtHalf * (polynomial(kCentralTop, r) / polynomial(kCentralBottom, r));
  }
  const double r = std::sqrt(-std::log(0.5 * (1 - magnitude)));
  const double quantile = r <= 5 ? polynomial(kTailTop, r - 1.6) / polynomial(kTailBottom, r - 1.6)
                                 : polynomial(kFarTop, r - 5) / polynomial(kFarBottom, r - 5);
  return std::copysign(kSqrtHalf * quantile, y);
}

double log_gamma(double x) {
  int sign = 0;  // lgamma itself would write a global
  return lgamma_r(x, &sign);
}

double digamma(double x) {
  if (std::isnan(x) || x == -kDoubleInfinity || (x <= 0 && x == std::floor(x))) return kNan;
  double sum = 0;
  if (x <= -1) {
    const double fraction = x - std::nearbyint(x);
    sum = -std::numbers::pi / std::tan(std::numbers::pi * fraction);
    x = 1 - x;
  }
  if (x >= 10) return sum + digamma_of_large(x);
  while (x > 2) {
    x -= 1;
    sum += 1 / x;
  }
  while (x < 1) {
    sum -= 1 / x;
    x += 1;
  }
  return sum + digamma_between_1_and_2(x);
}

double bessel_i0e(double x) {
  const long double magnitude = std::fabs(x);
  if (magnitude <= kBesselSplit) return static_cast<double>(chebyshev(kI0Small, magnitude / 4 - 1));
  return static_cast<double>(chebyshev(kI0Large, 16 / magnitude - 1) / std::sqrt(magnitude));
}

double bessel_i1e(double x) {
  const long double magnitude = std::fabs(x);
  if (magnitude <= kBesselSplit) return static_cast<double>(chebyshev(kI1Small, magnitude / 4 - 1) * x);
  return std::copysign(static_cast<double>(chebyshev(kI1Large, 16 / magnitude - 1) / std::sqrt(magnitude)), x);
}

double zeta(double x, double q) {
  if (std::isnan(x) || std::isnan(q) || x < 1) return kNan;
  if (x == 1) return kDoubleInfinity;
  if (q <= 0) {
    if (q == std::floor(q)) return kDoubleInfinity;
    if (x != std::floor(x)) return kNan;
  }
  // Euler-Maclaurin: a few terms, the integral of the rest, and corrections with (2k)! / B(2k).
  constexpr std::array<double, 12> kCorrections = {12.0,
                                                   -720.0,
                                                   30240.0,
                                                   -1209600.0,
                                                   47900160.0,
                                                   -1.8924375803183791606e9,
                                                   7.47242496e10,
                                                   -2.950130727918164224e12,
                                                   1.1646782814350067249e14,
                                                   -4.5979787224074726105e15,
                                                   1.8152105401943546773e17,
                                                   -7.1661652561756670113e18};
  constexpr double kEnough = std::numeric_limits<double>::epsilon() / 2;
  constexpr double kDirectTerms = 9;
  double sum = std::pow(q, -x);
  double a = q;
  double term = 0;
  for (double i = 0; i < kDirectTerms || a <= kDirectTerms; ++i) {
    a += 1;
    term = std::pow(a, -x);
    sum += term;
    if (std::fabs(term) < kEnough * std::fabs(sum)) return sum;
  }
  sum += term * a / (x - 1) - 0.5 * term;
  double factor = 1;
  double k = 0;
  for (const double correction : kCorrections) {
    factor *= x + k;
    term /= a;
    const double step = factor * term / correction;
    sum += step;
    if (std::fabs(step) < kEnough * std::fabs(sum)) return sum;
    k += 1;
    factor *= x + k;
    term /= a;
    k += 1;
  }
  return sum;
}

double polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n)) return kNan;
  if (n == 0) return digamma(x);
  const double sign = std::fmod(n, 2) == 0 ? -1.0 : 1.0;
  return sign * std::exp(log_gamma(n + 1)) * zeta(n + 1, x);
}

}  // namespace meshd::kernels
