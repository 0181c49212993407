// Functions of complex numbers against the same in long double, and their answers where XLA's count.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "service/kernels/elementwise/scalar_op.h"
#include "tests/unit/kernels/scalar_support.h"

namespace meshd::kernels {
namespace {

using tensor::DType;
using Exact = std::complex<long double>;

struct Function {
  ScalarOp op;
  Exact (*exact)(const Exact&);
};

Exact exact_log1p(const Exact& z) {
  // log |1 + z|^2 / 2 by way of a sum that long double has the digits for.
  const long double square = 2 * z.real() + z.real() * z.real() + z.imag() * z.imag();
  return {0.5L * std::log1p(square), std::atan2(z.imag(), 1 + z.real())};
}
Exact exact_expm1(const Exact& z) {
  const long double half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half, std::exp(z.real()) * std::sin(z.imag())};
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {ScalarOp::kExp, [](const Exact& z) { return std::exp(z); }},
      {scalar_op("exponential_minus_one"), exact_expm1},
      {scalar_op("log"), [](const Exact& z) { return std::log(z); }},
      {scalar_op("log_plus_one"), exact_log1p},
      {scalar_op("sqrt"), [](const Exact& z) { return std::sqrt(z); }},
      {scalar_op("rsqrt"), [](const Exact& z) { return Exact{1} / std::sqrt(z); }},
      {scalar_op("cbrt"), [](const Exact& z) { return std::pow(z, 1.0L / 3); }},
      {scalar_op("sine"), [](const Exact& z) { return std::sin(z); }},
      {scalar_op("cosine"), [](const Exact& z) { return std::cos(z); }},
      {scalar_op("tan"), [](const Exact& z) { return std::tan(z); }},
      {scalar_op("tanh"), [](const Exact& z) { return std::tanh(z); }},
      {scalar_op("logistic"), [](const Exact& z) { return Exact{1} / (Exact{1} + std::exp(-z)); }},
      {scalar_op("asin"), [](const Exact& z) { return std::asin(z); }},
      {scalar_op("acos"), [](const Exact& z) { return std::acos(z); }},
      {scalar_op("atan"), [](const Exact& z) { return std::atan(z); }},
      {scalar_op("sinh"), [](const Exact& z) { return std::sinh(z); }},
      {scalar_op("cosh"), [](const Exact& z) { return std::cosh(z); }},
      {scalar_op("asinh"), [](const Exact& z) { return std::asinh(z); }},
      {scalar_op("acosh"), [](const Exact& z) { return std::acosh(z); }},
      {scalar_op("atanh"), [](const Exact& z) { return std::atanh(z); }},
      {scalar_op("square"), [](const Exact& z) { return z * z; }},
      {ScalarOp::kNegate, [](const Exact& z) { return -z; }},
      {ScalarOp::kConj, [](const Exact& z) { return std::conj(z); }},
      {scalar_op("sign"), [](const Exact& z) { return z == Exact{0} ? z : z / std::abs(z); }},
  };
  return all;
}

template <class T>
std::vector<std::complex<T>> complex_samples(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> common(0, 3);
  std::uniform_real_distribution<double> size(-18, 0);
  std::vector<std::complex<T>> values;
  for (int i = 0; i < count; ++i) {
    const double scale = i % 3 == 0 ? std::pow(10.0, size(random)) : 1;
    values.emplace_back(static_cast<T>(common(random) * scale), static_cast<T>(common(random) * scale));
  }
  return values;
}

/// The distance of got from want as a multiple of epsilon and of want's size.
template <class T>
double error_of(const std::complex<T>& got, const Exact& want) {
  const Exact difference = Exact(got.real(), got.imag()) - want;
  const long double size = std::max(std::abs(want), static_cast<long double>(std::numeric_limits<T>::min()));
  return static_cast<double>(std::abs(difference) / size / static_cast<long double>(std::numeric_limits<T>::epsilon()));
}

template <class T>
void check_functions(DType dtype, double bound) {
  const std::vector<std::complex<T>> z = complex_samples<T>(20'000, 1);
  for (const Function& function : functions()) {
    const auto got = run_op<std::complex<T>>(function.op, dtype, z);
    for (size_t i = 0; i < z.size(); ++i) {
      const double error = error_of(got[i], function.exact(Exact(z[i].real(), z[i].imag())));
      ASSERT_LE(error, bound) << name(function.op) << " of " << tensor::name(dtype) << " at " << z[i] << ": " << got[i];
    }
  }
}

TEST(ScalarComplex, functions_of_complex64_are_right_to_the_last_place) {
  check_functions<float>(DType::kComplex64, 1.5);
}

TEST(ScalarComplex, functions_of_complex128_are_within_some_units) { check_functions<double>(DType::kComplex128, 16); }

TEST(ScalarComplex, arithmetic_is_within_a_unit_of_each_part) {
  const auto a = complex_samples<double>(20'000, 2);
  const auto b = complex_samples<double>(20'000, 3);
  const auto check = [&](ScalarOp op, Exact (*exact)(const Exact&, const Exact&), double bound) {
    const auto got = run_op<std::complex<double>>(op, DType::kComplex128, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const double error = error_of(got[i], exact(Exact(a[i].real(), a[i].imag()), Exact(b[i].real(), b[i].imag())));
      ASSERT_LE(error, bound) << name(op) << " of " << a[i] << ", " << b[i];
    }
  };
  check(
      ScalarOp::kAdd, [](const Exact& x, const Exact& y) { return x + y; }, 1);
  check(
      ScalarOp::kSubtract, [](const Exact& x, const Exact& y) { return x - y; }, 1);
  check(
      ScalarOp::kMultiply, [](const Exact& x, const Exact& y) { return x * y; }, 2);
  check(
      ScalarOp::kDivide, [](const Exact& x, const Exact& y) { return x / y; }, 4);
  check(
      ScalarOp::kPower, [](const Exact& x, const Exact& y) { return std::pow(x, y); }, 4000);
}

/// JAX 0.10.2, jit on the CPU: on a cut the sign of a zero does not count.
TEST(ScalarComplex, branch_cuts_are_on_the_side_of_xla) {
  using Complex = std::complex<float>;
  const auto check = [](const char* op, const std::vector<Complex>& z, const std::vector<Complex>& expected) {
    const auto got = run_op<Complex>(scalar_op(op), DType::kComplex64, z);
    for (size_t i = 0; i < z.size(); ++i) {
      EXPECT_NEAR(got[i].real(), expected[i].real(), 1e-6F) << op << z[i];
      EXPECT_NEAR(got[i].imag(), expected[i].imag(), 1e-6F) << op << z[i];
    }
  };
  const std::vector<Complex> below = {{-4, -0.0F}, {2, -0.0F}};  // below the real axis
  const std::vector<Complex> left = {{-0.0F, 2}, {-0.0F, -3}};   // left of the imaginary one
  check("sqrt", below, {{0, 2}, {1.4142135F, 0}});
  check("asin", below, {{-1.5707964F, 2.0634371F}, {1.5707964F, 1.316958F}});
  check("acos", below, {{3.1415927F, -2.0634371F}, {0, -1.316958F}});
  check("acosh", below, {{2.0634371F, 3.1415927F}, {1.316958F, 0}});
  check("atanh", below, {{-0.25541282F, -1.5707964F}, {0.54930615F, -1.5707964F}});
  check("asinh", left, {{1.316958F, 1.5707964F}, {1.7627472F, -1.5707964F}});
  check("atan", left, {{-1.5707964F, 0.54930615F}, {-1.5707964F, -0.34657359F}});
  check("log", below, {{1.3862944F, -3.1415927F}, {0.6931472F, 0}});
}

TEST(ScalarComplex, squares_do_not_cancel) {
  const std::vector<std::complex<float>> z = {{1e30F, 1e30F}, {3, -3}, {-2, 2}, {4, 3}};
  const auto got = run_op<std::complex<float>>(scalar_op("square"), DType::kComplex64, z);
  EXPECT_EQ(got[0], std::complex<float>(0, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(got[1], std::complex<float>(0, -18));
  EXPECT_FALSE(std::signbit(got[2].real()));
  EXPECT_EQ(got[3], std::complex<float>(7, 24));
}

/// XLA's formula with branches, a value at a time.
template <class T>
T plain_abs(std::complex<T> z) {
  const T re = std::abs(z.real());
  const T im = std::abs(z.imag());
  if (std::isinf(re) || std::isinf(im)) return std::numeric_limits<T>::infinity();
  if (std::isnan(re) || std::isnan(im)) return std::numeric_limits<T>::quiet_NaN();
  const T larger = std::max(re, im);
  if (larger == 0) return T{0};
  const T ratio = std::min(re, im) / larger;
  return larger * std::sqrt(std::fma(ratio, ratio, T{1}));
}

template <class T>
void expect_abs_as_plain() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> parts = {0,
                          T{-0.0},
                          1,
                          -3,
                          Limits::infinity(),
                          -Limits::infinity(),
                          Limits::quiet_NaN(),
                          -Limits::quiet_NaN(),
                          Limits::max(),
                          Limits::lowest(),
                          Limits::min(),
                          Limits::denorm_min(),
                          -5 * Limits::denorm_min()};
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  while (parts.size() < 71) parts.push_back(static_cast<T>(std::exp(20 * normal(random))));
  std::vector<std::complex<T>> values;
  for (const T re : parts) {
    for (const T im : parts) values.emplace_back(re, im);
  }
  const std::vector<T> got = run_op<T>(ScalarOp::kAbs, sizeof(T) == 4 ? DType::kComplex64 : DType::kComplex128, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const T want = plain_abs(values[i]);
    ASSERT_EQ(std::memcmp(&got[i], &want, sizeof(T)), 0) << values[i] << " is " << got[i] << ", not " << want;
  }
}

TEST(ScalarComplex, abs_has_the_bits_of_the_formula_with_branches) {
  expect_abs_as_plain<float>();
  expect_abs_as_plain<double>();
}

TEST(ScalarComplex, edges_are_as_xla_has_them) {
  using C = std::complex<float>;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto one = [](ScalarOp op, C z) { return run_op<C>(op, DType::kComplex64, std::vector<C>{z})[0]; };
  const auto two = [](ScalarOp op, C a, C b) {
    return run_op<C>(op, DType::kComplex64, std::vector<C>{a}, std::vector<C>{b})[0];
  };
  const auto size = [](C z) { return run_op<float>(ScalarOp::kAbs, DType::kComplex64, std::vector<C>{z})[0]; };
  EXPECT_EQ(size({3, 4}), 5);
  EXPECT_EQ(size({0, 0}), 0);
  EXPECT_EQ(size({3e30F, 4e30F}), 5e30F);
  EXPECT_EQ(size({-kInf, NAN}), kInf);
  EXPECT_EQ(one(scalar_op("sign"), {0, 0}), C(0, 0));
  EXPECT_EQ(one(scalar_op("log_plus_one"), {-1, 0}).real(), -kInf);
  EXPECT_EQ(one(scalar_op("log"), {0, 0}).real(), -kInf);
  EXPECT_EQ(one(scalar_op("log_plus_one"), {1e-20F, 0}), C(1e-20F, 0));
  EXPECT_EQ(one(scalar_op("exponential_minus_one"), {1e-20F, 0}), C(1e-20F, 0));
  EXPECT_EQ(two(ScalarOp::kDivide, {1, 1}, {0, 0}), C(kInf, kInf));
  EXPECT_EQ(two(ScalarOp::kDivide, {1, 2}, {kInf, 0}), C(0, 0));
  EXPECT_EQ(two(ScalarOp::kPower, {0, 0}, {0, 0}), C(1, 0));
  EXPECT_EQ(two(ScalarOp::kPower, {0, 0}, {1, 0}), C(0, 0));
  EXPECT_EQ(two(ScalarOp::kPower, {1, 1}, {0, 0}), C(1, 0));
  EXPECT_EQ(two(ScalarOp::kMultiply, {kInf, 1}, {1, 1}), C(kInf, kInf));
  EXPECT_EQ(find_scalar_kernel(ScalarOp::kMaximum, DType::kComplex64, DType::kComplex64), nullptr);
}

TEST(ScalarComplex, parts_are_taken_and_put_together) {
  const std::vector<float> re = {1, 2, 3};
  const std::vector<float> im = {-4, 5, -6};
  const auto z = run_op<std::complex<float>>(ScalarOp::kComplex, DType::kFloat32, re, im);
  EXPECT_EQ(run_op<float>(ScalarOp::kReal, DType::kComplex64, z), re);
  EXPECT_EQ(run_op<float>(ScalarOp::kImag, DType::kComplex64, z), im);
  EXPECT_EQ(run_op<uint8_t>(ScalarOp::kCompareEq, DType::kComplex64, z, z), (std::vector<uint8_t>{1, 1, 1}));
}

}  // namespace
}  // namespace meshd::kernels
