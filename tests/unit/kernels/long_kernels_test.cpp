// What is cut so that it passes checkpoints: large products by panels, long sorts by buckets. Bits stay those of the
// whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "service/kernels/product/gemm.h"
#include "service/kernels/sort/vector_sort.h"

namespace meshd::test {
namespace {

// Has always something to attend to, and counts how often.
class Counting final : public core::Checkpoint {
 public:
  explicit Counting(int64_t stop_at = INT64_MAX) : Checkpoint(kAlways, kNothing), stop_at_(stop_at) {}
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  void attend() override {
    if (++count_ == stop_at_) throw core::Cancelled();
  }
  void leave() override {}
  void come_back() override {}
  void abandon() noexcept override {}

  static inline const std::atomic<uint32_t> kAlways{1};
  static inline const std::atomic<int64_t> kNothing{0};
  const int64_t stop_at_;
  int64_t count_ = 0;
};

template <typename T>
std::vector<T> random_numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& value : out) value = static_cast<T>(random()) / static_cast<T>(1u << 31) - 1;
  return out;
}

template <typename T>
const std::byte* bytes(const std::vector<T>& values, int64_t offset = 0) {
  return reinterpret_cast<const std::byte*>(values.data() + offset);
}
template <typename T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// Columns of a large product against the same columns of a product that is small enough to be made at once.
template <typename T>
void expect_bits_of_parts(tensor::DType dtype, int64_t m, int64_t n, int64_t k, int64_t part) {
  const std::vector<T> a = random_numbers<T>(m * k, 1);
  const std::vector<T> b = random_numbers<T>(k * n, 2);
  std::vector<T> c(static_cast<size_t>(m * n));
  Counting checkpoint;
  const kernels::Gemm whole({m, n, k, dtype, dtype, {k, 1}, {n, 1}});
  std::vector<std::byte> scratch(static_cast<size_t>(whole.scratch_bytes()));
  whole.run(bytes(a), bytes(b), bytes(c), scratch.data(), &checkpoint);
  EXPECT_GT(checkpoint.count(), 1);
  const kernels::Gemm small({m, part, k, dtype, dtype, {k, 1}, {n, 1}});
  scratch.resize(std::max(scratch.size(), static_cast<size_t>(small.scratch_bytes())));
  std::vector<T> columns(static_cast<size_t>(m * part));
  for (int64_t first = 0; first + part <= n; first += n / 3 / 48 * 48) {
    small.run(bytes(a), bytes(b, first), bytes(columns), scratch.data());
    int64_t different = 0;
    for (int64_t row = 0; row < m; ++row)
      different += std::memcmp(&columns[static_cast<size_t>(row * part)], &c[static_cast<size_t>(row * n + first)],
                               static_cast<size_t>(part) * sizeof(T)) != 0;
    EXPECT_EQ(different, 0) << "columns from " << first;
  }
}

TEST(LongKernels, large_float_product_has_the_bits_of_its_parts) {
  expect_bits_of_parts<float>(tensor::DType::kFloat32, 256, 9000, 2000, 480);
}

TEST(LongKernels, large_double_product_has_the_bits_of_its_parts) {
  expect_bits_of_parts<double>(tensor::DType::kFloat64, 1100, 1900, 2000, 480);
}

TEST(LongKernels, product_stops_at_a_checkpoint) {
  const std::vector<float> a = random_numbers<float>(256 * 2000, 1);
  const std::vector<float> b = random_numbers<float>(2000 * 9000, 2);
  std::vector<float> c(256 * 9000);
  Counting checkpoint(2);
  const kernels::Gemm product(
      {256, 9000, 2000, tensor::DType::kFloat32, tensor::DType::kFloat32, {2000, 1}, {9000, 1}});
  std::vector<std::byte> scratch(static_cast<size_t>(product.scratch_bytes()));
  EXPECT_THROW(product.run(bytes(a), bytes(b), bytes(c), scratch.data(), &checkpoint), core::Cancelled);
}

template <typename T>
void expect_sorted(std::vector<T> keys) {
  std::vector<T> expected = keys;
  std::sort(expected.begin(), expected.end());
  std::vector<T> spare(keys.size());
  Counting checkpoint;
  kernels::vector_sort(keys.data(), spare.data(), static_cast<int64_t>(keys.size()), &checkpoint);
  EXPECT_GT(checkpoint.count(), 1);
  EXPECT_TRUE(keys == expected);
}

// Longer than what is sorted at once.
constexpr size_t kLongLine = (size_t{1} << 24) + 12'345;

TEST(LongKernels, long_line_of_keys_is_sorted) {
  std::mt19937_64 random(3);
  std::vector<uint32_t> keys(kLongLine);
  for (uint32_t& key : keys) key = static_cast<uint32_t>(random());
  expect_sorted(std::move(keys));
}

TEST(LongKernels, long_line_of_few_different_keys_is_sorted) {
  std::mt19937_64 random(4);
  for (const uint64_t different : {uint64_t{1}, uint64_t{5}}) {
    std::vector<uint64_t> keys(kLongLine);
    for (uint64_t& key : keys) key = random() % different;
    expect_sorted(std::move(keys));
  }
}

TEST(LongKernels, long_line_of_wide_keys_is_sorted) {
  std::mt19937_64 random(5);
  std::vector<kernels::Wide128> keys(kLongLine);
  for (kernels::Wide128& key : keys) key = {random(), random() % 1000};
  std::vector<kernels::Wide128> spare(keys.size());
  kernels::vector_sort(keys.data(), spare.data(), static_cast<int64_t>(keys.size()), nullptr);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }));
}

}  // namespace
}  // namespace meshd::test
