// Products of matrices and vectors, and batches of small products, against their definition in double: random shapes
// and layouts, sizes around a vector's, gaps between matrices, special values.
#include "service/kernels/product/product_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "service/kernels/product/vector_product.h"

namespace meshd::test {
namespace {

using kernels::BatchSpec;
using kernels::GemmSpec;
using kernels::MatrixLayout;
using kernels::ProductBatch;
using tensor::DType;

template <typename T>
constexpr DType kType = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;

template <typename T>
const std::byte* bytes(const std::vector<T>& values, int64_t offset = 0) {
  return reinterpret_cast<const std::byte*>(values.data() + offset);
}
template <typename T>
std::byte* bytes(std::vector<T>& values, int64_t offset = 0) {
  return reinterpret_cast<std::byte*>(values.data() + offset);
}

/// Finite numbers, and now and then one of those that need care.
template <typename T>
std::vector<T> numbers(int64_t count, bool has_special, std::mt19937& random) {
  using Limits = std::numeric_limits<T>;
  constexpr T kSpecial[] = {Limits::infinity(),  -Limits::infinity(), Limits::quiet_NaN(), T{0}, -T{0},
                            Limits::denorm_min()};
  std::normal_distribution<T> normal;
  std::vector<T> out(static_cast<size_t>(count));
  for (T& value : out)
    value = has_special && random() % 16 == 0 ? kSpecial[random() % std::size(kSpecial)] : normal(random);
  return out;
}

/// A matrix of the batch: where its elements are.
struct Places {
  MatrixLayout layout;
  int64_t step = 0;

  Places(int64_t rows, int64_t columns, bool by_rows, int64_t gap, int64_t between)
      : layout(by_rows ? MatrixLayout{columns + gap, 1} : MatrixLayout{1, rows + gap}),
        step((by_rows ? rows * (columns + gap) : columns * (rows + gap)) + between) {}
};

template <typename T>
struct Sum {
  long double value = 0;
  long double of_sizes = 0;  // of the terms' absolute values: what rounding errors are measured by
};

template <typename T>
Sum<T> sum_of(const BatchSpec& spec, const std::vector<T>& a, const std::vector<T>& b, int64_t index, int64_t i,
              int64_t j) {
  Sum<T> sum;
  for (int64_t p = 0; p < spec.one.k; ++p) {
    const long double x =
        a[static_cast<size_t>(index * spec.a_step + i * spec.one.a.row_stride + p * spec.one.a.column_stride)];
    const long double y =
        b[static_cast<size_t>(index * spec.b_step + p * spec.one.b.row_stride + j * spec.one.b.column_stride)];
    sum.value += x * y;
    sum.of_sizes += std::abs(x * y);
  }
  return sum;
}

/// Rounding errors; infinities and NaNs where the definition has them.
template <typename T>
void expect_near(T got, const Sum<T>& expected) {
  if (!std::isfinite(expected.value)) {
    EXPECT_EQ(std::isnan(got), std::isnan(expected.value));
    if (!std::isnan(got)) {
      EXPECT_EQ(static_cast<long double>(got), expected.value);
    }
    return;
  }
  const long double bound =
      expected.of_sizes * 64 * std::numeric_limits<T>::epsilon() + 64 * std::numeric_limits<T>::denorm_min();
  EXPECT_LE(std::abs(got - expected.value), bound);
}

/// Whether there is a loop for it.
template <typename T>
bool expect_batch(const BatchSpec& spec, int64_t count, bool has_special, std::mt19937& random) {
  const std::optional<ProductBatch> batch = ProductBatch::of(spec);
  if (!batch) return false;
  const GemmSpec& one = spec.one;
  const std::vector<T> a = numbers<T>(count * spec.a_step, has_special, random);
  const std::vector<T> b = numbers<T>(count * spec.b_step, has_special, random);
  constexpr T kUntouched = 77;
  const int64_t each = one.m * one.n;
  std::vector<T> c(static_cast<size_t>(count * each + 1), std::numeric_limits<T>::quiet_NaN());
  c.back() = kUntouched;
  batch->run(bytes(a), bytes(b), bytes(c), count);
  EXPECT_EQ(c.back(), kUntouched);
  for (int64_t index = 0; index < count; ++index) {
    for (int64_t i = 0; i < one.m; ++i) {
      for (int64_t j = 0; j < one.n; ++j)
        expect_near(c[static_cast<size_t>((index * one.m + i) * one.n + j)], sum_of(spec, a, b, index, i, j));
    }
  }
  if (has_special) return true;
  std::vector<T> alone(c.size(), kUntouched);
  for (int64_t index = 0; index < count; ++index)
    batch->run(bytes(a, index * spec.a_step), bytes(b, index * spec.b_step), bytes(alone, index * each), 1);
  EXPECT_EQ(alone, c) << "one by one";
  return true;
}

template <typename T>
void expect_random_batches(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  int made = 0;
  for (int round = 0; round < 600; ++round) {
    const auto size = [&] { return below(4) == 0 ? 1 : below(3) == 0 ? 1 + below(70) : 1 + below(9); };
    const int64_t m = size();
    const int64_t n = size();
    const int64_t k = size();
    const int64_t gap = below(3) == 0 ? below(4) : 0;
    const Places a(m, k, below(2) == 0, gap, below(3) == 0 ? 5 : 0);
    const Places b(k, n, below(2) == 0, below(3) == 0 ? gap : 0, below(3) == 0 ? 3 : 0);
    const BatchSpec spec{{m, n, k, kType<T>, kType<T>, a.layout, b.layout}, a.step, b.step};
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n << ", round " << round);
    made += expect_batch<T>(spec, 1 + below(40), below(4) == 0, random) ? 1 : 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(made, 200);
}

TEST(product_batch, random_small_products_match_the_definition) {
  expect_random_batches<float>(1);
  expect_random_batches<double>(2);
}

TEST(product_batch, one_operand_may_be_the_same_for_all) {
  std::mt19937 random(3);
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 3}, {1, 1, 64}, {4, 4, 4}, {5, 19, 16}}) {
    const GemmSpec one{m, n, k, DType::kFloat32, DType::kFloat32, {k, 1}, {n, 1}};
    const std::vector<float> a = numbers<float>(m * k * 9, false, random);
    const std::vector<float> b = numbers<float>(k * n, false, random);
    std::vector<float> c(static_cast<size_t>(m * n * 9));
    const BatchSpec spec{one, m * k, 0};
    const std::optional<ProductBatch> batch = ProductBatch::of(spec);
    ASSERT_TRUE(batch);
    batch->run(bytes(a), bytes(b), bytes(c), 9);
    for (int64_t index = 0; index < 9; ++index)
      expect_near(c[static_cast<size_t>((index + 1) * m * n - 1)], sum_of(spec, a, b, index, m - 1, n - 1));
  }
}

template <typename T>
void expect_random_vector_products(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  for (int round = 0; round < 120; ++round) {
    const auto size = [&] {
      return below(8) == 0 ? 4000 + below(6000) : below(2) == 0 ? 1 + below(300) : 1 + below(20);
    };
    int64_t results = size();
    const int64_t terms = size();
    if (results * terms > 1'000'000) results = 1 + below(20);
    const bool matrix_is_b = below(2) == 0;
    const bool by_rows = below(2) == 0;
    const int64_t step = by_rows == matrix_is_b ? 1 + below(3) : 1;  // where rows are weighted
    const Places matrix(matrix_is_b ? terms : results, matrix_is_b ? results : terms, by_rows, below(3), 0);
    GemmSpec spec{results, 1, terms, kType<T>, kType<T>, matrix.layout, {step, 1}};
    if (matrix_is_b) spec = {1, results, terms, kType<T>, kType<T>, {step * terms, step}, matrix.layout};
    SCOPED_TRACE(testing::Message() << spec.m << " x " << spec.k << " x " << spec.n << ", round " << round);
    const std::optional<kernels::VectorForm> form = kernels::vector_form(spec);
    ASSERT_TRUE(form);
    const bool has_special = below(6) == 0;
    const std::vector<T> of_matrix = numbers<T>(matrix.step, has_special, random);
    const std::vector<T> of_vector = numbers<T>(step * terms, has_special, random);
    const std::vector<T>& a = matrix_is_b ? of_vector : of_matrix;
    const std::vector<T>& b = matrix_is_b ? of_matrix : of_vector;
    std::vector<T> made(static_cast<size_t>(results + 1), T{77});
    // Of two vectors either one is the matrix.
    const std::byte* const left = bytes(a);
    const std::byte* const right = bytes(b);
    kernels::vector_loop(kType<T>, form->order)(form->shape, form->matrix_is_b ? right : left,
                                                form->matrix_is_b ? left : right, bytes(made), nullptr);
    EXPECT_EQ(made.back(), T{77});
    for (int64_t i = 0; i < results; ++i) {
      const Sum<T> expected = sum_of({spec, 0, 0}, a, b, 0, matrix_is_b ? 0 : i, matrix_is_b ? i : 0);
      expect_near(made[static_cast<size_t>(i)], expected);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(vector_product, random_products_match_the_definition) {
  expect_random_vector_products<float>(4);
  expect_random_vector_products<double>(5);
}

}  // namespace
}  // namespace meshd::test
