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
