// Every routine in four element types by what its results must satisfy: A = L U, Q^H Q = 1, A V = V D and so on.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "service/core/error.h"
#include "service/kernels/lapack/lapack.h"

namespace meshd::kernels {
namespace {

/// All work items; with `backwards`, those between two barriers from the last to the first, one by one. Scratch and
/// workspace begin as garbage.
void run_all(const Lapack& lapack, const std::byte* const* operands, std::byte* const* results,
             bool backwards = false) {
  const auto aligned = [](std::vector<std::byte>& memory) {
    return memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  };
  std::vector<std::byte> scratch(static_cast<size_t>(lapack.scratch_bytes()) + 64, std::byte{0xFF});
  std::vector<std::byte> workspace(static_cast<size_t>(lapack.workspace_bytes()) + 64, std::byte{0xFF});
  const Lapack::Memory memory = {operands, results, aligned(scratch), aligned(workspace)};
  if (!backwards) return lapack.run(memory, 0, lapack.work_count());
  std::vector<int64_t> ends = lapack.barriers();
  ends.push_back(lapack.work_count());
  int64_t begin = 0;
  for (const int64_t end : ends) {
    for (int64_t item = end; item-- > begin;) lapack.run(memory, item, item + 1);
    begin = end;
  }
}

using tensor::DType;

template <class T>
struct Kind;
template <>
struct Kind<float> {
  using Real = float;
  static constexpr DType kDType = DType::kFloat32;
};
template <>
struct Kind<double> {
  using Real = double;
  static constexpr DType kDType = DType::kFloat64;
};
template <>
struct Kind<std::complex<float>> {
  using Real = float;
  static constexpr DType kDType = DType::kComplex64;
};
template <>
struct Kind<std::complex<double>> {
  using Real = double;
  static constexpr DType kDType = DType::kComplex128;
};
template <class T>
using Real = typename Kind<T>::Real;
template <class T>
constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

template <class T>
T conjugate(T value) {
  if constexpr (kIsComplex<T>) return std::conj(value);
  return value;
}

/// Row-major.
template <class T>
struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<T> values;

  Matrix(int64_t m, int64_t n) : rows(m), columns(n), values(static_cast<size_t>(m * n)) {}
  T& operator()(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  const T& operator()(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(values.data()); }

  static Matrix work_item(int64_t n) {
    Matrix out(n, n);
    for (int64_t i = 0; i < n; ++i) out(i, i) = 1;
    return out;
  }
};

template <class T>
Matrix<T> operator*(const Matrix<T>& a, const Matrix<T>& b) {
  EXPECT_EQ(a.columns, b.rows);
  Matrix<T> out(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) out(i, j) += a(i, k) * b(k, j);
    }
  }
  return out;
}

template <class T>
Matrix<T> adjoint(const Matrix<T>& a) {
  Matrix<T> out(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) out(j, i) = conjugate(a(i, j));
  }
  return out;
}

/// Largest difference, beside the largest element.
template <class T>
double distance(const Matrix<T>& a, const Matrix<T>& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.columns, b.columns);
  double most = 0;
  double scale = 1;
  for (size_t i = 0; i < a.values.size(); ++i) {
    most = std::max(most, static_cast<double>(std::abs(a.values[i] - b.values[i])));
    scale = std::max(scale, static_cast<double>(std::abs(b.values[i])));
    if (!std::isfinite(std::abs(a.values[i]))) return std::numeric_limits<double>::infinity();
  }
  return most / scale;
}

template <class T>
class LapackTest : public testing::Test {
 protected:
  static constexpr double kSmall = std::is_same_v<Real<T>, float> ? 2e-5 : 1e-13;

  T value() {
    if constexpr (kIsComplex<T>) {
      return {static_cast<Real<T>>(normal_(random_)), static_cast<Real<T>>(normal_(random_))};
    } else {
      return static_cast<T>(normal_(random_));
    }
  }
  Matrix<T> noise(int64_t m, int64_t n) {
    Matrix<T> out(m, n);
    for (T& element : out.values) element = value();
    return out;
  }
  Matrix<T> hermitian(int64_t n) {
    Matrix<T> out = noise(n, n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) out(j, i) = conjugate(out(i, j));
      out(i, i) = std::real(out(i, i));
    }
    return out;
  }

  /// One problem; results and scratch begin as garbage.
  static void run(LapackSpec spec, const std::vector<std::byte*>& operands, const std::vector<std::byte*>& results) {
    spec.dtype = Kind<T>::kDType;
    spec.batch = 1;
    const Lapack lapack(spec);
    run_all(lapack, operands.data(), results.data());
  }
  template <class V>
  static std::byte* bytes(std::vector<V>& values) {
    return reinterpret_cast<std::byte*>(values.data());
  }
  static std::byte* bytes(int32_t& value) { return reinterpret_cast<std::byte*>(&value); }

  /// Q from the reflectors below the diagonal of `factors`, by orgqr.
  Matrix<T> q_of(const Matrix<T>& factors, std::vector<T>& tau, int64_t columns) {
    Matrix<T> reflectors(factors.rows, columns);
    for (int64_t i = 0; i < factors.rows; ++i) {
      for (int64_t j = 0; j < std::min(columns, factors.columns); ++j) reflectors(i, j) = factors(i, j);
    }
    Matrix<T> q(factors.rows, columns);
    run({.routine = LapackRoutine::kOrgqr,
         .rows = factors.rows,
         .columns = columns,
         .inner = static_cast<int64_t>(tau.size())},
        {reflectors.bytes(), bytes(tau)}, {q.bytes()});
    return q;
  }
  static Matrix<T> upper(const Matrix<T>& factors, int64_t below = 0) {
    Matrix<T> out = factors;
    for (int64_t i = 0; i < out.rows; ++i) {
      for (int64_t j = 0; j + below < i && j < out.columns; ++j) out(i, j) = 0;
    }
    return out;
  }

  /// A Cholesky factor of `a`, in its lower or upper triangle.
  static void expect_factor(const Matrix<T>& factor, const Matrix<T>& a, char uplo) {
    if (uplo == 'L') {
      const Matrix<T> l = adjoint(upper(adjoint(factor)));
      EXPECT_LT(distance(l * adjoint(l), a), kSmall);
    } else {
      const Matrix<T> u = upper(factor);
      EXPECT_LT(distance(adjoint(u) * u, a), kSmall);
    }
  }

  std::mt19937 random_{3};
  std::normal_distribution<double> normal_;
};

using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(LapackTest, Types);

TYPED_TEST(LapackTest, potrf) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 7, 70}) {
    const Matrix<T> half = this->noise(n, n + 3);
    const Matrix<T> a = half * adjoint(half);
    for (const char uplo : {'L', 'U'}) {
      Matrix<T> in = a;
      Matrix<T> factor(n, n);
      int32_t info = 77;
      this->run({.routine = LapackRoutine::kPotrf, .rows = n, .columns = n, .uplo = uplo}, {in.bytes()},
                {factor.bytes(), this->bytes(info)});
      EXPECT_EQ(info, 0);
      this->expect_factor(factor, a, uplo);
    }
  }
  Matrix<T> bad = Matrix<T>::work_item(4);
  bad(2, 2) = -1;
  Matrix<T> factor(4, 4);
  int32_t info = 0;
  this->run({.routine = LapackRoutine::kPotrf, .rows = 4, .columns = 4}, {bad.bytes()},
            {factor.bytes(), this->bytes(info)});
  EXPECT_EQ(info, 3) << "the leading minor that is not positive";
}

TYPED_TEST(LapackTest, potrf_of_blocks) {
  using T = TypeParam;
  for (const int64_t n : {384, 417}) {
    const Matrix<T> half = this->noise(n, n + 3);
    const Matrix<T> a = half * adjoint(half);
    for (const char uplo : {'L', 'U'}) {
      const LapackSpec spec = {.routine = LapackRoutine::kPotrf,
                               .dtype = Kind<T>::kDType,
                               .batch = 2,
                               .rows = n,
                               .columns = n,
                               .uplo = uplo};
      const Lapack lapack(spec);
      EXPECT_FALSE(lapack.barriers().empty());
      // Two problems: the matrix, and another one that fails at pivot 300, in the third block.
      std::vector<T> in = a.values;
      in.insert(in.end(), a.values.begin(), a.values.end());
      in[static_cast<size_t>(n * n + 299 * n + 299)] = -1;
      const auto run_once = [&](bool backwards) {
        std::pair<std::vector<T>, std::vector<int32_t>> out(std::vector<T>(in.size()), {77, 77});
        const std::byte* const operand = this->bytes(in);
        std::byte* const results[] = {this->bytes(out.first), this->bytes(out.second)};
        run_all(lapack, &operand, results, backwards);
        return out;
      };
      const auto [factors, info] = run_once(false);
      EXPECT_EQ(info, (std::vector<int32_t>{0, 300}));
      EXPECT_EQ(std::memcmp(factors.data(), run_once(true).first.data(), factors.size() * sizeof(T)), 0)
          << "work items in another order give other bits";
      Matrix<T> factor(n, n);
      std::copy_n(factors.begin(), n * n, factor.values.begin());
      // The other triangle is as it was.
      EXPECT_EQ(uplo == 'L' ? factor(0, n - 1) : factor(n - 1, 0), uplo == 'L' ? a(0, n - 1) : a(n - 1, 0));
      this->expect_factor(factor, a, uplo);
      // In place, and a value that is no number: it spreads, but is no pivot that is not positive.
      in.resize(static_cast<size_t>(n * n));
      in[static_cast<size_t>(129 * n + 129)] = std::numeric_limits<typename Kind<T>::Real>::quiet_NaN();
      LapackSpec single = spec;
      single.batch = 1;
      int32_t failed = 0;
      const std::byte* const operand = this->bytes(in);
      std::byte* const results[] = {this->bytes(in), this->bytes(failed)};
      run_all(Lapack(single), &operand, results);
      EXPECT_EQ(failed, 0);
      EXPECT_EQ(std::memcmp(in.data(), factors.data(), 100 * sizeof(T)), 0);
      EXPECT_TRUE(std::isnan(std::real(in.back())));
    }
  }
}

TYPED_TEST(LapackTest, getrf) {
  using T = TypeParam;
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 5}, {7, 3}, {3, 7}, {90, 80}}) {
    const Matrix<T> a = this->noise(m, n);
    const int64_t k = std::min(m, n);
    Matrix<T> in = a;
    Matrix<T> lu(m, n);
    std::vector<int32_t> pivots(static_cast<size_t>(k), -9);
    int32_t info = 77;
    this->run({.routine = LapackRoutine::kGetrf, .rows = m, .columns = n}, {in.bytes()},
              {lu.bytes(), this->bytes(pivots), this->bytes(info)});
    EXPECT_EQ(info, 0);
    Matrix<T> l(m, k);
    Matrix<T> u(k, n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        if (i > j && j < k) l(i, j) = lu(i, j);
        if (i <= j) u(i, j) = lu(i, j);
      }
      if (i < k) l(i, i) = 1;
    }
    Matrix<T> permuted = a;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t other = pivots[static_cast<size_t>(i)] - 1;
      ASSERT_GE(other, i);
      ASSERT_LT(other, m);
      for (int64_t j = 0; j < n; ++j) std::swap(permuted(i, j), permuted(other, j));
    }
    EXPECT_LT(distance(l * u, permuted), this->kSmall);
  }
  Matrix<T> zero(3, 3);
  Matrix<T> lu(3, 3);
  std::vector<int32_t> pivots(3);
  int32_t info = 0;
  this->run({.routine = LapackRoutine::kGetrf, .rows = 3, .columns = 3}, {zero.bytes()},
            {lu.bytes(), this->bytes(pivots), this->bytes(info)});
  EXPECT_EQ(info, 1) << "the first pivot that is zero";
}

TYPED_TEST(LapackTest, geqrf_orgqr_ormqr) {
  using T = TypeParam;
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {6, 6}, {9, 4}, {4, 9}, {80, 70}}) {
    const Matrix<T> a = this->noise(m, n);
    const int64_t k = std::min(m, n);
    Matrix<T> in = a;
    Matrix<T> factors(m, n);
    std::vector<T> tau(static_cast<size_t>(k));
    this->run({.routine = LapackRoutine::kGeqrf, .rows = m, .columns = n}, {in.bytes()},
              {factors.bytes(), this->bytes(tau)});
    const Matrix<T> q = this->q_of(factors, tau, m);
    EXPECT_LT(distance(adjoint(q) * q, Matrix<T>::work_item(m)), this->kSmall);
    EXPECT_LT(distance(q * this->upper(factors), a), this->kSmall);
    // Products with Q without making it.
    Matrix<T> reflectors(m, k);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < k; ++j) reflectors(i, j) = factors(i, j);
    }
    for (const char side : {'L', 'R'}) {
      for (const char transpose : {'N', 'T'}) {
        Matrix<T> c = side == 'L' ? this->noise(m, 3) : this->noise(3, m);
        Matrix<T> out(c.rows, c.columns);
        this->run({.routine = LapackRoutine::kOrmqr,
                   .rows = m,
                   .columns = k,
                   .inner = k,
                   .other_rows = c.rows,
                   .other_columns = c.columns,
                   .side = side,
                   .transpose = transpose},
                  {reflectors.bytes(), this->bytes(tau), c.bytes()}, {out.bytes()});
        const Matrix<T> op = transpose == 'N' ? q : adjoint(q);
        EXPECT_LT(distance(out, side == 'L' ? op * c : c * op), this->kSmall);
      }
    }
  }
}

TYPED_TEST(LapackTest, geqp3) {
  using T = TypeParam;
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{6, 6}, {9, 4}, {4, 9}, {70, 60}}) {
    const Matrix<T> a = this->noise(m, n);
    Matrix<T> in = a;
    Matrix<T> factors(m, n);
    std::vector<int32_t> free(static_cast<size_t>(n), 0);
    std::vector<int32_t> pivots(static_cast<size_t>(n), -1);
    std::vector<T> tau(static_cast<size_t>(std::min(m, n)));
    this->run({.routine = LapackRoutine::kGeqp3, .rows = m, .columns = n}, {in.bytes(), this->bytes(free)},
              {factors.bytes(), this->bytes(pivots), this->bytes(tau)});
    Matrix<T> permuted(m, n);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) permuted(i, j) = a(i, pivots[static_cast<size_t>(j)] - 1);
    }
    EXPECT_LT(distance(this->q_of(factors, tau, m) * this->upper(factors), permuted), this->kSmall);
    for (int64_t i = 1; i < std::min(m, n); ++i) {
      EXPECT_LE(std::abs(factors(i, i)), std::abs(factors(i - 1, i - 1)) * (1 + this->kSmall)) << "pivots do not grow";
    }
  }
}

TYPED_TEST(LapackTest, syevd) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 9, 60}) {
    const Matrix<T> a = this->hermitian(n);
    for (const char uplo : {'L', 'U'}) {
      for (const char mode : {'V', 'N'}) {
        Matrix<T> in = a;
        for (int64_t i = 0; i < n; ++i) {  // the other triangle is not looked at
          for (int64_t j = 0; j < i; ++j)
            (uplo == 'L' ? in(j, i) : in(i, j)) = std::numeric_limits<typename Kind<T>::Real>::quiet_NaN();
        }
        Matrix<T> v(n, n);
        std::vector<Real<T>> w(static_cast<size_t>(n));
        int32_t info = 77;
        this->run({.routine = LapackRoutine::kSyevd, .rows = n, .columns = n, .uplo = uplo, .mode = mode}, {in.bytes()},
                  {v.bytes(), this->bytes(w), this->bytes(info)});
        EXPECT_EQ(info, 0);
        EXPECT_TRUE(std::is_sorted(w.begin(), w.end()));
        if (mode == 'N') {
          Real<T> trace = 0;
          Real<T> sum = 0;
          for (int64_t i = 0; i < n; ++i) trace += std::real(a(i, i));
          for (const Real<T> value : w) sum += value;
          EXPECT_NEAR(trace, sum, this->kSmall * 100);
          continue;
        }
        Matrix<T> scaled = v;
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) scaled(i, j) *= w[static_cast<size_t>(j)];
        }
        EXPECT_LT(distance(scaled * adjoint(v), a), this->kSmall);
        EXPECT_LT(distance(adjoint(v) * v, Matrix<T>::work_item(n)), this->kSmall);
      }
    }
  }
}

TYPED_TEST(LapackTest, gesdd_gesvd) {
  using T = TypeParam;
  for (const LapackRoutine routine : {LapackRoutine::kGesdd, LapackRoutine::kGesvd}) {
    for (const auto& [m, n] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 5}, {9, 4}, {4, 9}, {60, 7}, {40, 50}}) {
      const Matrix<T> a = this->noise(m, n);
      const int64_t k = std::min(m, n);
      std::vector<Real<T>> of_mode[3];
      for (const char mode : {'A', 'S', 'N'}) {
        const int64_t left = mode == 'A' ? m : k;
        const int64_t right = mode == 'A' ? n : k;
        Matrix<T> in = a;
        Matrix<T> rest(m, n);
        Matrix<T> u(m, left);
        Matrix<T> vt(right, n);
        std::vector<Real<T>> s(static_cast<size_t>(k));
        int32_t info = 77;
        this->run(
            {.routine = routine, .rows = m, .columns = n, .left_columns = left, .right_rows = right, .mode = mode},
            {in.bytes()}, {rest.bytes(), this->bytes(s), u.bytes(), vt.bytes(), this->bytes(info)});
        EXPECT_EQ(info, 0);
        EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()));
        of_mode[mode == 'A' ? 0 : mode == 'S' ? 1 : 2] = s;
        if (mode == 'N') continue;
        EXPECT_LT(distance(adjoint(u) * u, Matrix<T>::work_item(left)), this->kSmall);
        EXPECT_LT(distance(vt * adjoint(vt), Matrix<T>::work_item(right)), this->kSmall);
        Matrix<T> middle(left, right);
        for (int64_t i = 0; i < k; ++i) middle(i, i) = s[static_cast<size_t>(i)];
        EXPECT_LT(distance(u * middle * vt, a), this->kSmall);
      }
      for (size_t i = 0; i < of_mode[0].size(); ++i) EXPECT_NEAR(of_mode[0][i], of_mode[2][i], this->kSmall * 20);
    }
  }
}

TYPED_TEST(LapackTest, geev) {
  using T = TypeParam;
  using Complex = std::complex<Real<T>>;
  for (const int64_t n : {1, 2, 8, 40}) {
    const Matrix<T> a = this->noise(n, n);
    Matrix<Complex> complex_a(n, n);
    for (size_t i = 0; i < a.values.size(); ++i) complex_a.values[i] = a.values[i];
    Matrix<T> in = a;
    std::vector<T> w(static_cast<size_t>(n));
    std::vector<Real<T>> wi(static_cast<size_t>(n));
    Matrix<Complex> left(n, n);
    Matrix<Complex> right(n, n);
    int32_t info = 77;
    std::vector<std::byte*> results = {this->bytes(w)};
    if (!kIsComplex<T>) results.push_back(this->bytes(wi));
    results.insert(results.end(), {left.bytes(), right.bytes(), this->bytes(info)});
    this->run({.routine = LapackRoutine::kGeev, .rows = n, .columns = n}, {in.bytes()}, results);
    EXPECT_EQ(info, 0);
    Matrix<Complex> values(n, n);
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      values(i, i) = kIsComplex<T> ? Complex(w[at]) : Complex(std::real(w[at]), wi[at]);
    }
    EXPECT_LT(distance(complex_a * right, right * values), this->kSmall * 10);
    EXPECT_LT(distance(adjoint(left) * complex_a, values * adjoint(left)), this->kSmall * 10);
    for (int64_t j = 0; j < n; ++j) {
      double norm = 0;
      for (int64_t i = 0; i < n; ++i) norm += std::norm(right(i, j));
      EXPECT_NEAR(norm, 1, this->kSmall);
    }
    // Vectors that are not asked for are zero.
    this->run({.routine = LapackRoutine::kGeev, .rows = n, .columns = n, .left = 'N'}, {in.bytes()}, results);
    EXPECT_EQ(distance(left, Matrix<Complex>(n, n)), 0);
    EXPECT_LT(distance(complex_a * right, right * values), this->kSmall * 10);
  }
}

TYPED_TEST(LapackTest, gees) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 8, 40}) {
    const Matrix<T> a = this->noise(n, n);
    Matrix<T> in = a;
    Matrix<T> form(n, n);
    Matrix<T> q(n, n);
    std::vector<T> w(static_cast<size_t>(n));
    std::vector<Real<T>> wi(static_cast<size_t>(n));
    int32_t selected = 77;
    int32_t info = 77;
    std::vector<std::byte*> results = {form.bytes(), q.bytes(), this->bytes(w)};
    if (!kIsComplex<T>) results.push_back(this->bytes(wi));
    results.insert(results.end(), {this->bytes(selected), this->bytes(info)});
    this->run({.routine = LapackRoutine::kGees, .rows = n, .columns = n}, {in.bytes()}, results);
    EXPECT_EQ(info, 0);
    EXPECT_EQ(selected, 0);
    EXPECT_LT(distance(q * form * adjoint(q), a), this->kSmall);
    EXPECT_LT(distance(adjoint(q) * q, Matrix<T>::work_item(n)), this->kSmall);
    EXPECT_EQ(distance(this->upper(form, kIsComplex<T> ? 0 : 1), form), 0) << "triangular, or nearly";
  }
}

TYPED_TEST(LapackTest, gehrd) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 8, 60}) {
    const Matrix<T> a = this->noise(n, n);
    Matrix<T> in = a;
    Matrix<T> form(n, n);
    std::vector<T> tau(static_cast<size_t>(n - 1));
    int32_t info = 77;
    this->run({.routine = LapackRoutine::kGehrd, .rows = n, .columns = n, .low = 1, .high = n}, {in.bytes()},
              {form.bytes(), this->bytes(tau), this->bytes(info)});
    EXPECT_EQ(info, 0);
    // Reflectors stand one below the diagonal: Q is 1 beside a smaller Q.
    Matrix<T> q = Matrix<T>::work_item(n);
    if (n > 1) {
      Matrix<T> below(n - 1, n - 1);
      for (int64_t i = 0; i + 1 < n; ++i) {
        for (int64_t j = 0; j + 1 < n; ++j) below(i, j) = form(i + 1, j);
      }
      const Matrix<T> small = this->q_of(below, tau, n - 1);
      for (int64_t i = 1; i < n; ++i) {
        for (int64_t j = 1; j < n; ++j) q(i, j) = small(i - 1, j - 1);
      }
    }
    EXPECT_LT(distance(q * this->upper(form, 1) * adjoint(q), a), this->kSmall);
  }
}

TYPED_TEST(LapackTest, sytrd) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 8, 60}) {
    const Matrix<T> a = this->hermitian(n);
    Matrix<T> in = a;
    Matrix<T> form(n, n);
    std::vector<Real<T>> d(static_cast<size_t>(n));
    std::vector<Real<T>> e(static_cast<size_t>(n - 1));
    std::vector<T> tau(static_cast<size_t>(n - 1));
    int32_t info = 77;
    this->run({.routine = LapackRoutine::kSytrd, .rows = n, .columns = n, .uplo = 'L'}, {in.bytes()},
              {form.bytes(), this->bytes(d), this->bytes(e), this->bytes(tau), this->bytes(info)});
    EXPECT_EQ(info, 0);
    Matrix<T> q = Matrix<T>::work_item(n);
    if (n > 1) {
      Matrix<T> below(n - 1, n - 1);
      for (int64_t i = 0; i + 1 < n; ++i) {
        for (int64_t j = 0; j <= i; ++j) below(i, j) = form(i + 1, j);
      }
      const Matrix<T> small = this->q_of(below, tau, n - 1);
      for (int64_t i = 1; i < n; ++i) {
        for (int64_t j = 1; j < n; ++j) q(i, j) = small(i - 1, j - 1);
      }
    }
    Matrix<T> tridiagonal(n, n);
    for (int64_t i = 0; i < n; ++i) {
      tridiagonal(i, i) = d[static_cast<size_t>(i)];
      if (i + 1 < n) tridiagonal(i, i + 1) = tridiagonal(i + 1, i) = e[static_cast<size_t>(i)];
    }
    EXPECT_LT(distance(q * tridiagonal * adjoint(q), a), this->kSmall);
  }
}

TYPED_TEST(LapackTest, gtsv_and_its_perturbed_kin) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 3, 50}) {
    Matrix<T> a(n, n);
    std::vector<T> lower(static_cast<size_t>(n), std::numeric_limits<typename Kind<T>::Real>::quiet_NaN());
    std::vector<T> diagonal(static_cast<size_t>(n));
    std::vector<T> upper(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      // Zeros on the diagonal: rows must be exchanged.
      a(i, i) = diagonal[at] = i % 3 == 0 && n > 2 ? T{} : this->value() + T{3};
      if (i > 0) a(i, i - 1) = lower[at] = this->value() + T{2};
      if (i + 1 < n) a(i, i + 1) = upper[at] = this->value() + T{1};
    }
    Matrix<T> x = this->noise(n, 4);
    Matrix<T> b = a * x;
    const auto expect_solution = [&](const Matrix<T>& found) {
      EXPECT_LT(distance(a * found, b), this->kSmall * 50) << n;
    };
    std::vector<T> outs[3] = {lower, lower, lower};
    Matrix<T> found(n, 4);
    int32_t info = 77;
    const LapackSpec spec = {
        .routine = LapackRoutine::kGtsv, .rows = n, .columns = n, .other_rows = n, .other_columns = 4};
    this->run(spec, {this->bytes(lower), this->bytes(diagonal), this->bytes(upper), b.bytes()},
              {this->bytes(outs[0]), this->bytes(outs[1]), this->bytes(outs[2]), found.bytes(), this->bytes(info)});
    if (n != 3) {  // there the matrix may be singular by its zeros
      EXPECT_EQ(info, 0);
      expect_solution(found);
    }
    LapackSpec perturbed = spec;
    perturbed.routine = LapackRoutine::kTridiagonalPerturbed;
    this->run(perturbed, {this->bytes(lower), this->bytes(diagonal), this->bytes(upper), b.bytes()}, {found.bytes()});
    if (n != 3) expect_solution(found);
    std::vector<T> nothing(static_cast<size_t>(n));
    this->run(perturbed, {this->bytes(nothing), this->bytes(nothing), this->bytes(nothing), b.bytes()},
              {found.bytes()});
    for (const T& element : found.values)
      EXPECT_TRUE(std::isfinite(std::abs(element))) << "a singular system has a finite answer";
  }
}

TYPED_TEST(LapackTest, trsm_of_many_right_sides_is_cut_by_them) {
  using T = TypeParam;
  constexpr int64_t kOrder = 420, kSides = 200;  // three items of 64 right sides, and one of 8
  for (const char side : {'L', 'R'}) {
    Matrix<T> a = this->noise(kOrder, kOrder);
    for (T& element : a.values) element *= Real<T>(0.02);
    for (int64_t i = 0; i < kOrder; ++i) {
      a(i, i) = T{3};
      for (int64_t j = i + 1; j < kOrder; ++j) a(i, j) = T{0};
    }
    const Matrix<T> x = side == 'L' ? this->noise(kOrder, kSides) : this->noise(kSides, kOrder);
    Matrix<T> b = side == 'L' ? a * x : x * a;
    const LapackSpec spec = {.routine = LapackRoutine::kTrsm,
                             .dtype = Kind<T>::kDType,
                             .batch = 1,
                             .rows = kOrder,
                             .columns = kOrder,
                             .other_rows = b.rows,
                             .other_columns = b.columns,
                             .side = side};
    EXPECT_EQ(kernels::Lapack(spec).work_count(), 4);
    Matrix<T> found(b.rows, b.columns);
    this->run(spec, {a.bytes(), b.bytes()}, {found.bytes()});
    EXPECT_LT(distance(found, x), this->kSmall) << side;
    Matrix<T> in_place = b;
    this->run(spec, {a.bytes(), in_place.bytes()}, {in_place.bytes()});
    EXPECT_EQ(in_place.values, found.values);
  }
}

TYPED_TEST(LapackTest, trsm) {
  using T = TypeParam;
  for (const char side : {'L', 'R'}) {
    for (const char uplo : {'L', 'U'}) {
      for (const char transpose : {'N', 'T', 'C'}) {
        for (const char diagonal : {'N', 'U'}) {
          const int64_t n = 37;
          Matrix<T> a = this->noise(n, n);
          for (T& element : a.values) element *= Real<T>(0.2);
          for (int64_t i = 0; i < n; ++i) a(i, i) = T{3};
          Matrix<T> triangle(n, n);
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              if (i == j) triangle(i, j) = diagonal == 'U' ? T{1} : a(i, j);
              if (uplo == 'L' ? i > j : i < j) triangle(i, j) = a(i, j);
              if (uplo == 'L' ? i < j : i > j)
                a(i, j) = std::numeric_limits<typename Kind<T>::Real>::quiet_NaN();  // not looked at
            }
          }
          Matrix<T> op = triangle;
          if (transpose != 'N') {
            op = adjoint(triangle);
            if (transpose == 'T') {
              for (T& element : op.values) element = conjugate(element);
            }
          }
          const Matrix<T> x = side == 'L' ? this->noise(n, 5) : this->noise(5, n);
          Matrix<T> b = side == 'L' ? op * x : x * op;
          Matrix<T> found(b.rows, b.columns);
          const LapackSpec spec = {.routine = LapackRoutine::kTrsm,
                                   .rows = n,
                                   .columns = n,
                                   .other_rows = b.rows,
                                   .other_columns = b.columns,
                                   .uplo = uplo,
                                   .side = side,
                                   .transpose = transpose,
                                   .diagonal = diagonal};
          this->run(spec, {a.bytes(), b.bytes()}, {found.bytes()});
          EXPECT_LT(distance(side == 'L' ? op * found : found * op, b), this->kSmall)
              << side << uplo << transpose << diagonal;
          Matrix<T> in_place = b;
          this->run(spec, {a.bytes(), in_place.bytes()}, {in_place.bytes()});
          EXPECT_EQ(in_place.values, found.values);
        }
      }
    }
  }
}

TYPED_TEST(LapackTest, iterations_do_not_begin_with_values_that_are_not_finite) {
  using T = TypeParam;
  using Complex = std::complex<Real<T>>;
  for (const Real<T> bad : {std::numeric_limits<typename Kind<T>::Real>::quiet_NaN(),
                            std::numeric_limits<typename Kind<T>::Real>::infinity()}) {
    const int64_t n = 6;
    Matrix<T> a = this->hermitian(n);
    a(3, 2) = a(2, 3) = bad;
    Matrix<T> one(n, n);
    Matrix<Complex> left(n, n);
    Matrix<Complex> right(n, n);
    std::vector<T> w(n);
    std::vector<Real<T>> wi(n);
    int32_t selected = 0;
    int32_t info = 0;
    const LapackSpec square = {.rows = n, .columns = n, .left_columns = n, .right_rows = n, .mode = 'V'};
    LapackSpec spec = square;
    spec.routine = LapackRoutine::kSyevd;
    this->run(spec, {a.bytes()}, {one.bytes(), this->bytes(wi), this->bytes(info)});
    EXPECT_EQ(info, -4);
    for (const Real<T> value : wi) EXPECT_TRUE(std::isnan(value));
    for (const LapackRoutine routine : {LapackRoutine::kGesdd, LapackRoutine::kGesvd}) {
      spec = square;
      spec.routine = routine;
      spec.mode = 'A';
      info = 0;
      Matrix<T> vt(n, n);
      Matrix<T> u(n, n);
      this->run(spec, {a.bytes()}, {one.bytes(), this->bytes(wi), u.bytes(), vt.bytes(), this->bytes(info)});
      EXPECT_EQ(info, -4);
      EXPECT_TRUE(std::isnan(std::real(u(0, 0))));
    }
    std::vector<std::byte*> results = {this->bytes(w)};
    if (!kIsComplex<T>) results.push_back(this->bytes(wi));
    results.insert(results.end(), {left.bytes(), right.bytes(), this->bytes(info)});
    spec = square;
    spec.routine = LapackRoutine::kGeev;
    info = 0;
    this->run(spec, {a.bytes()}, results);
    EXPECT_EQ(info, -4);
    EXPECT_TRUE(std::isnan(right(0, 0).real()));
    Matrix<T> q(n, n);
    results = {one.bytes(), q.bytes(), this->bytes(w)};
    if (!kIsComplex<T>) results.push_back(this->bytes(wi));
    results.insert(results.end(), {this->bytes(selected), this->bytes(info)});
    spec.routine = LapackRoutine::kGees;
    info = 0;
    this->run(spec, {a.bytes()}, results);
    EXPECT_EQ(info, -4);
  }
}

TYPED_TEST(LapackTest, threads_give_the_bits_of_one) {
  using T = TypeParam;
  // Blocked code and its workspaces, many callers at a time.
  const int64_t n = 70;
  const int64_t batch = 4;
  std::vector<T> a(static_cast<size_t>(n * n * batch));
  for (T& element : a) element = this->value();
  for (const LapackRoutine routine :
       {LapackRoutine::kGetrf, LapackRoutine::kGesdd, LapackRoutine::kSyevd, LapackRoutine::kGees}) {
    LapackSpec spec = {.routine = routine,
                       .dtype = Kind<T>::kDType,
                       .batch = batch,
                       .rows = n,
                       .columns = n,
                       .left_columns = n,
                       .right_rows = n};
    if (routine == LapackRoutine::kGesdd) spec.mode = 'A';
    const Lapack lapack(spec);
    const auto run_once = [&] {
      // Room for the largest list of results; those that a routine does not have stay as they are.
      std::vector<std::vector<std::byte>> memory(6, std::vector<std::byte>(a.size() * sizeof(T)));
      std::vector<std::byte*> results;
      for (auto& result : memory) results.push_back(result.data());
      const std::byte* const operand = reinterpret_cast<const std::byte*>(a.data());
      run_all(lapack, &operand, results.data());
      return memory;
    };
    const auto expected = run_once();
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 5; ++i) wrong[t] += run_once() != expected;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0)) << static_cast<int>(routine);
  }
}

TEST(Lapack, says_what_it_does_not_take) {
  EXPECT_THROW(Lapack({.dtype = DType::kFloat16}), core::Error);
  EXPECT_THROW(Lapack({.routine = LapackRoutine::kGetrf, .batch = 1, .rows = 1 << 17, .columns = 1 << 17}),
               core::Error);
}

TEST(Lapack, nothing_to_compute) {
  for (const LapackRoutine routine :
       {LapackRoutine::kPotrf, LapackRoutine::kGetrf, LapackRoutine::kSyevd, LapackRoutine::kGesdd,
        LapackRoutine::kGeev, LapackRoutine::kGees, LapackRoutine::kGehrd, LapackRoutine::kSytrd}) {
    LapackSpec spec = {.routine = routine, .batch = 3};
    if (routine == LapackRoutine::kGesdd) spec.mode = 'S';
    const Lapack lapack(spec);
    std::vector<std::vector<int32_t>> info(6, std::vector<int32_t>(3, 77));
    std::vector<std::byte*> results;
    for (auto& result : info) results.push_back(reinterpret_cast<std::byte*>(result.data()));
    const std::byte* const operand = nullptr;
    run_all(lapack, &operand, results.data());
    int zeros = 0;
    for (const auto& result : info) zeros += result == std::vector<int32_t>(3, 0);
    EXPECT_GE(zeros, 1) << "info of empty problems is 0";
  }
}

}  // namespace
}  // namespace meshd::kernels
