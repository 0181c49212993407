// Functions of floats: how far they are from the exact value, in units in the last place, over special and random
// values.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "tests/unit/kernels/scalar_support.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

constexpr double kBound = 4;
constexpr int kSamples = 200'000;

template <class T, class Exact>
struct UnaryCase {
  ScalarOp op;
  Exact (*exact)(Exact);
};

template <class T, class Exact>
void check_unary(DType dtype, const std::vector<UnaryCase<T, Exact>>& cases, double bound = kBound) {
  const std::vector<T> x = float_samples<T>(kSamples, 1);
  for (const auto& [op, exact] : cases) {
    const std::vector<T> got = run_op<T>(op, dtype, x);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double apart = ulps_apart<T, Exact>(got[i], exact(static_cast<Exact>(x[i])));
      if (apart > worst) {
        worst = apart;
        where = i;
      }
    }
    std::printf("%-22s %-8s %4.0f ulp\n", std::string(name(op)).c_str(), std::string(tensor::name(dtype)).c_str(),
                worst);
    EXPECT_LE(worst, bound) << name(op) << " of " << tensor::name(dtype) << " at " << x[where] << ": got " << got[where]
                            << ", exact " << static_cast<double>(exact(static_cast<Exact>(x[where])));
  }
}

template <class E>
std::vector<std::pair<ScalarOp, E (*)(E)>> functions() {
  return {
      {ScalarOp::kExp, [](E x) { return std::exp(x); }},
      {scalar_op("exponential_minus_one"), [](E x) { return std::expm1(x); }},
      {scalar_op("log"), [](E x) { return std::log(x); }},
      {scalar_op("log_plus_one"), [](E x) { return std::log1p(x); }},
      {scalar_op("sqrt"), [](E x) { return std::sqrt(x); }},
      {scalar_op("rsqrt"), [](E x) { return E{1} / std::sqrt(x); }},
      {scalar_op("cbrt"), [](E x) { return std::cbrt(x); }},
      {scalar_op("sine"), [](E x) { return std::sin(x); }},
      {scalar_op("cosine"), [](E x) { return std::cos(x); }},
      {scalar_op("tan"), [](E x) { return std::tan(x); }},
      {scalar_op("tanh"), [](E x) { return std::tanh(x); }},
      {scalar_op("logistic"), [](E x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }},
      {scalar_op("erf"), [](E x) { return std::erf(x); }},
      {scalar_op("erfc"), [](E x) { return std::erfc(x); }},
      {scalar_op("asin"), [](E x) { return std::asin(x); }},
      {scalar_op("acos"), [](E x) { return std::acos(x); }},
      {scalar_op("atan"), [](E x) { return std::atan(x); }},
      {scalar_op("sinh"), [](E x) { return std::sinh(x); }},
      {scalar_op("cosh"), [](E x) { return std::cosh(x); }},
      {scalar_op("asinh"), [](E x) { return std::asinh(x); }},
      {scalar_op("acosh"), [](E x) { return std::acosh(x); }},
      {scalar_op("atanh"), [](E x) { return std::atanh(x); }},
  };
}

template <class T, class E>
std::vector<UnaryCase<T, E>> unary_cases() {
  std::vector<UnaryCase<T, E>> cases;
  for (const auto& [op, exact] : functions<E>()) cases.push_back({op, exact});
  return cases;
}

TEST(ScalarMath, float32_functions_are_within_four_ulp) {
  check_unary<float, double>(DType::kFloat32, unary_cases<float, double>());
  check_unary<float, double>(DType::kFloat32, {{ScalarOp::kLgamma, [](double x) { return std::lgamma(x); }}});
}

// Those that loops compute with polynomials of their own, or through double (float_functors.h).
TEST(ScalarMath, most_float32_functions_are_the_nearest_float_or_its_neighbour) {
  constexpr std::array kClose = {"exponential", "log",  "sqrt", "rsqrt", "cbrt", "sine", "cosine",
                                 "tan",         "tanh", "erf",  "asin",  "acos", "atan"};
  std::vector<UnaryCase<float, double>> cases = unary_cases<float, double>();
  std::erase_if(
      cases, [&](const auto& each) { return std::find(kClose.begin(), kClose.end(), name(each.op)) == kClose.end(); });
  ASSERT_EQ(cases.size(), kClose.size());
  check_unary<float, double>(DType::kFloat32, cases, 1);
}

TEST(ScalarMath, float64_functions_are_within_four_ulp) {
  check_unary<double, long double>(DType::kFloat64, unary_cases<double, long double>());
  check_unary<double, long double>(DType::kFloat64,
                                   {{ScalarOp::kLgamma, [](long double x) { return std::lgamma(x); }}});
}

// Those that double_functions.h computes with FMA.
constexpr std::array kPrecise = {"log", "rsqrt", "sine", "cosine", "tan", "erf", "asin", "acos", "atan"};

TEST(ScalarMath, some_float64_functions_are_the_nearest_double_or_its_neighbour) {
  if (cpu_level() == CpuLevel::kBase) GTEST_SKIP() << "without FMA they are the library's";
  std::vector<UnaryCase<double, long double>> cases = unary_cases<double, long double>();
  std::erase_if(cases, [&](const auto& each) {
    return std::find(kPrecise.begin(), kPrecise.end(), name(each.op)) == kPrecise.end();
  });
  ASSERT_EQ(cases.size(), kPrecise.size());
  check_unary<double, long double>(DType::kFloat64, cases, 1);
}

// Lanes that a recipe leaves to the library are read again when the others have their results: in the operand's own
// memory.
TEST(ScalarMath, results_in_the_memory_of_their_operand_are_the_same) {
  const std::vector<double> x = float_samples<double>(1000, 5);
  for (const char* const function : kPrecise) {
    const ScalarOp op = scalar_op(function);
    const std::vector<double> apart = run_op<double>(op, DType::kFloat64, x);
    std::vector<double> in_place = x;
    const std::byte* const operands[] = {reinterpret_cast<const std::byte*>(in_place.data())};
    find_scalar_kernel(op, DType::kFloat64, DType::kFloat64)(operands, reinterpret_cast<std::byte*>(in_place.data()),
                                                             static_cast<int64_t>(in_place.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const bool both_nan = std::isnan(apart[i]) && std::isnan(in_place[i]);
      EXPECT_TRUE(both_nan || std::bit_cast<int64_t>(apart[i]) == std::bit_cast<int64_t>(in_place[i]))
          << function << " at " << x[i] << ": " << apart[i] << " and " << in_place[i];
    }
  }
}

template <class T, class E>
void check_binary(ScalarOp op, DType dtype, E (*exact)(E, E), double bound = kBound) {
  std::vector<T> a = float_samples<T>(kSamples, 2);
  std::vector<T> b = float_samples<T>(kSamples, 3);
  std::shuffle(b.begin(), b.end(), std::mt19937(4));
  // Bases and exponents whose power is neither zero nor infinite; every special value against every other.
  for (size_t i = 0; i < 30 * 30; ++i) {
    a[5000 + i] = a[i / 30];
    b[5000 + i] = float_samples<T>(30, 3)[i % 30];
  }
  const std::vector<T> got = run_op<T>(op, dtype, a, b);
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double apart = ulps_apart<T, E>(got[i], exact(a[i], b[i]));
    if (apart > worst) {
      worst = apart;
      where = i;
    }
  }
  std::printf("%-22s %-8s %4.0f ulp\n", std::string(name(op)).c_str(), std::string(tensor::name(dtype)).c_str(), worst);
  EXPECT_LE(worst, bound) << name(op) << " at " << a[where] << ", " << b[where] << ": got " << got[where];
}

TEST(ScalarMath, powers_and_angles_are_within_four_ulp) {
  check_binary<float, double>(
      ScalarOp::kPower, DType::kFloat32, [](double a, double b) { return std::pow(a, b); }, 1);
  check_binary<float, double>(scalar_op("atan2"), DType::kFloat32, [](double a, double b) { return std::atan2(a, b); });
  const double bound = cpu_level() == CpuLevel::kBase ? kBound : 1;
  check_binary<double, long double>(
      ScalarOp::kPower, DType::kFloat64, [](long double a, long double b) { return std::pow(a, b); }, bound);
  check_binary<double, long double>(
      scalar_op("atan2"), DType::kFloat64, [](long double a, long double b) { return std::atan2(a, b); }, bound);
}

/// Points with the value to 20 digits (mpmath).
struct Point {
  double x;
  double value;
};

void check_points(ScalarOp op, const std::vector<Point>& points, double bound) {
  std::vector<double> x;
  std::vector<float> narrow;
  for (const Point& point : points) x.push_back(point.x);
  const std::vector<double> got = run_op<double>(op, DType::kFloat64, x);
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_LE((ulps_apart<double, double>(got[i], points[i].value)), bound)
        << name(op) << " at " << x[i] << ": " << got[i];
    if (static_cast<double>(static_cast<float>(x[i])) != x[i]) continue;
    const float of_float = run_op<float>(op, DType::kFloat32, std::vector<float>{static_cast<float>(x[i])})[0];
    EXPECT_LE((ulps_apart<float, double>(of_float, points[i].value)), 1) << name(op) << " of float at " << x[i];
  }
}

TEST(ScalarMath, special_functions_match_known_values) {
  check_points(scalar_op("erf_inv"),
               {{0.5, 0.47693627620446987338},
                {-0.25, -0.22531205501217810473},
                {0.75, 0.81341984759761854169},
                {0.875, 1.0847870400692831413},
                {-0.9375, -1.3171503349861307489},
                {0.9990234375, 2.3314677736219476723},
                {0.1, 0.088855990494257691974},
                {0.85, 1.0179024648320275882},
                {-0.8499999, -1.0179022150688644237},
                {0.9999999, 3.7665625816384708887},
                {0.999999999999, 5.0420318985726961301},
                {0.9999999999999999, 5.8635847487551679272},
                {0.0625, 0.055445948772782020299},
                {0.999, 2.3267537655135244939},
                {0.3, 0.27246271472675434502},
                {1e-300, 8.862269254527580137e-301}},
               4);
  check_points(ScalarOp::kDigamma,
               {{1.0, -0.57721566490153286061},
                {1.5, 0.036489973978576520559},
                {2.0, 0.42278433509846713939},
                {0.5, -1.9635100260214234794},
                {0.25, -4.2274535333762654081},
                {1e-05, -100000.57719921567289},
                {3.75, 1.1825373886117962286},
                {9.5, 2.1977378764029495332},
                {10.0, 2.2517525890667211076},
                {10.5, 2.3030010342976863753},
                {100.0, 4.6001618527380874002},
                {10000000000.0, 23.02585092989045684},
                {-0.5, 0.036489973978576520559},
                {-1.5, 0.70315664064524318723},
                {-2.25, 4.1585835646579722748},
                {-10.75, -0.72089576016716117401},
                {1.4375, -0.023613544005297899142},
                {1.46875, 0.0068654114707357767281},
                {1.25, -0.22745353337626540809}},
               4);
  check_points(scalar_op("bessel_i0e"),
               {{0.0, 1.0},
                {0.5, 0.64503527044915006811},
                {1.0, 0.4657596075936404365},
                {-2.5, 0.27004644161220273956},
                {7.75, 0.14581227430891430778},
                {8.0, 0.14343178185685031071},
                {8.25, 0.14116455063299349976},
                {20.0, 0.089780311884826021596},
                {-100.0, 0.039944379299096682648},
                {10000.0, 0.0039894726746047321064},
                {10000000000.0, 3.9894228040641945645e-6},
                {1e-08, 0.999999990000000075}},
               4);
  check_points(scalar_op("bessel_i1e"),
               {{0.5, 0.15642080318487169714},
                {1.0, 0.20791041534970844887},
                {-2.5, -0.20658464953126655421},
                {7.75, 0.13605110008033910914},
                {8.0, 0.13414249329269817831},
                {8.25, 0.13231017396500142316},
                {20.0, 0.087506222183288665356},
                {-100.0, -0.039744153025130252674},
                {10000.0, 0.0039892731959836622645},
                {10000000000.0, 3.9894228038647234242e-6},
                {1e-08, 4.9999999500000004171e-9}},
               4);
}

TEST(ScalarMath, functions_of_two_match_known_values) {
  struct Known {
    ScalarOp op;
    double a;
    double b;
    double value;
  };
  const std::vector<Known> known = {{scalar_op("zeta"), 2, 1, 1.6449340668482264365},
                                    {scalar_op("zeta"), 3, 0.5, 8.4143983221171599978},
                                    {scalar_op("zeta"), 1.5, 2.25, 1.497513607666668036},
                                    {scalar_op("zeta"), 10, 3.75, 2.0216966495304931163e-6},
                                    {scalar_op("zeta"), 4, -1.5, 32.432379369864603737},
                                    {scalar_op("zeta"), 2.5, 100, 0.00067168749945317154206},
                                    {scalar_op("zeta"), 1.125, 1, 8.5862412945105753},
                                    {scalar_op("zeta"), 30, 1.5, 5.215096203815731826e-6},
                                    {scalar_op("polygamma"), 1, 1, 1.6449340668482264365},
                                    {scalar_op("polygamma"), 2, 0.5, -16.828796644234319996},
                                    {scalar_op("polygamma"), 3, 2.25, 0.32454400918839602279},
                                    {scalar_op("polygamma"), 5, 10.5, 0.00023704787507685851552},
                                    {scalar_op("polygamma"), 0, 3.5, 1.1031566406452431872},
                                    {scalar_op("polygamma"), 1, -1.5, 9.3792466449891237539}};
  for (const Known& k : known) {
    const double got = run_op<double>(k.op, DType::kFloat64, std::vector<double>{k.a}, std::vector<double>{k.b})[0];
    EXPECT_NEAR(got / k.value, 1, 1e-14) << name(k.op) << " at " << k.a << ", " << k.b;
  }
}

TEST(ScalarMath, special_functions_keep_to_xla_at_the_edges) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> edges = {0.0, -0.0, -1, -2, kNan, kInfinity, -kInfinity, 1, 2};
  const auto check = [&](ScalarOp op, const std::vector<double>& expected) {
    const std::vector<double> got = run_op<double>(op, DType::kFloat64, edges);
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool same = std::isnan(expected[i])
                            ? std::isnan(got[i])
                            : got[i] == expected[i] && std::signbit(got[i]) == std::signbit(expected[i]);
      EXPECT_TRUE(same) << name(op) << " at " << edges[i] << " gives " << got[i];
    }
  };
  check(scalar_op("erf_inv"), {0.0, -0.0, -kInfinity, kNan, kNan, kNan, kNan, kInfinity, kNan});
  for (const float x : {0.0F, -0.0F, 1.0F, -1.0F, 2.0F, -1e-40F}) {
    const float got = run_op<float>(scalar_op("erf_inv"), DType::kFloat32, std::vector<float>{x})[0];
    const double expected = run_op<double>(scalar_op("erf_inv"), DType::kFloat64, std::vector<double>{x})[0];
    EXPECT_LE((ulps_apart<float, double>(got, expected)), 1) << x << ": " << got;
  }
  check(ScalarOp::kDigamma, {kNan, kNan, kNan, kNan, kNan, kInfinity, kNan});
  check(ScalarOp::kLgamma, {kInfinity, kInfinity, kInfinity, kInfinity, kNan, kInfinity, kInfinity, 0.0, 0.0});
  check(scalar_op("bessel_i1e"), {0.0, -0.0});
}

}  // namespace
}  // namespace meshd::kernels
