// Segments of one lane against one value after another, at every length around where the loops change.
#include "service/kernels/fold/fold_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace meshd::kernels {
namespace {

constexpr std::array<int64_t, 5> kLongCounts = {255, 256, 257, 1000, 4099};

std::vector<int64_t> counts() {
  std::vector<int64_t> all(kLongCounts.begin(), kLongCounts.end());
  for (int64_t count = 1; count <= 130; ++count) all.push_back(count);
  return all;
}

template <class Acc>
std::vector<Acc> fold_segments(ScalarOp op, const std::vector<float>& values, int64_t groups) {
  const std::optional<FoldKernels> fold = find_fold(op, tensor::DType::kFloat32);
  std::vector<Acc> results(static_cast<size_t>(groups));
  fold->segments(reinterpret_cast<const std::byte*>(values.data()), groups,
                 static_cast<int64_t>(values.size()) / groups, 1, reinterpret_cast<std::byte*>(results.data()));
  return results;
}

/// Some values are zeros of both signs, infinite, subnormal or NaN.
std::vector<float> values_with_special_ones(int64_t count, std::mt19937& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array<float, 6> kSpecial = {0.0F, -0.0F, kInfinity, -kInfinity, 1e-42F, std::nanf("")};
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    const uint32_t kind = random() % 64;
    value = kind < kSpecial.size() ? kSpecial[kind] : normal(random);
  }
  return values;
}

TEST(FoldSegments, maximum_and_minimum_are_those_of_one_value_after_another) {
  std::mt19937 random(3);
  for (const ScalarOp op : {ScalarOp::kMaximum, ScalarOp::kMinimum}) {
    const ScalarKernel kernel = find_scalar_kernel(op, tensor::DType::kFloat32, tensor::DType::kFloat32);
    for (const int64_t count : counts()) {
      const int64_t groups = 19;
      std::vector<float> values = values_with_special_ones(groups * count, random);
      // Half of the segments have none but numbers, and one has only zeros.
      for (size_t i = values.size() / 2; i < values.size(); ++i) {
        if (!std::isfinite(values[i]) || values[i] == 0) values[i] = -1.5F;
      }
      for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = i % 3 == 1 ? 0.0F : -0.0F;
      const std::vector<float> got = fold_segments<float>(op, values, groups);
      for (int64_t group = 0; group < groups; ++group) {
        const float* const from = values.data() + group * count;
        float expected = from[0];
        for (int64_t i = 1; i < count; ++i) {
          const std::array<const std::byte*, 2> operands = {reinterpret_cast<const std::byte*>(&expected),
                                                            reinterpret_cast<const std::byte*>(from + i)};
          float next = 0;
          kernel(operands.data(), reinterpret_cast<std::byte*>(&next), 1);
          expected = next;
        }
        const float result = got[static_cast<size_t>(group)];
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(result)) << count << " values, segment " << group;
        } else {
          EXPECT_EQ(std::bit_cast<uint32_t>(result), std::bit_cast<uint32_t>(expected))
              << count << " values, segment " << group << ": " << result << " for " << expected;
        }
      }
    }
  }
}

TEST(FoldSegments, sums_of_floats_are_exact_where_floats_are_and_near_elsewhere) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const int64_t count : counts()) {
    const int64_t groups = 11;
    std::vector<float> whole(static_cast<size_t>(groups * count));
    for (float& value : whole) value = static_cast<float>(static_cast<int32_t>(random() % 2001) - 1000);
    std::vector<float> rounded(whole.size());
    for (float& value : rounded) value = normal(random);
    const std::vector<double> exact = fold_segments<double>(ScalarOp::kAdd, whole, groups);
    const std::vector<double> near = fold_segments<double>(ScalarOp::kAdd, rounded, groups);
    for (int64_t group = 0; group < groups; ++group) {
      double sum = 0;
      double sum_of_rounded = 0;
      double magnitude = 0;
      for (int64_t i = group * count; i < (group + 1) * count; ++i) {
        sum += whole[static_cast<size_t>(i)];
        sum_of_rounded += rounded[static_cast<size_t>(i)];
        magnitude += std::fabs(rounded[static_cast<size_t>(i)]);
      }
      EXPECT_EQ(exact[static_cast<size_t>(group)], sum) << count << " values, segment " << group;
      // Two roundings of floats.
      EXPECT_NEAR(near[static_cast<size_t>(group)], sum_of_rounded, magnitude * 0x1p-22) << count << " values";
    }
  }
}

TEST(FoldSegments, sums_of_special_floats_are_those_of_one_value_after_another) {
  for (const int64_t count : counts()) {
    std::vector<float> values(static_cast<size_t>(3 * count), -0.0F);
    values[static_cast<size_t>(2 * count - 1)] = std::numeric_limits<float>::infinity();
    values[static_cast<size_t>(3 * count - 1)] = std::nanf("");
    const std::vector<double> sums = fold_segments<double>(ScalarOp::kAdd, values, 3);
    EXPECT_TRUE(sums[0] == 0 && std::signbit(sums[0])) << count << " values: " << sums[0];
    EXPECT_EQ(sums[1], std::numeric_limits<double>::infinity()) << count << " values";
    EXPECT_TRUE(std::isnan(sums[2])) << count << " values: " << sums[2];
  }
}

TEST(FoldRows, maximum_and_minimum_are_those_of_one_row_after_another) {
  std::mt19937 random(7);
  for (const ScalarOp op : {ScalarOp::kMaximum, ScalarOp::kMinimum}) {
    const ScalarKernel kernel = find_scalar_kernel(op, tensor::DType::kFloat32, tensor::DType::kFloat32);
    const std::optional<FoldKernels> fold = find_fold(op, tensor::DType::kFloat32);
    for (const int64_t lanes : {1, 7, 63, 64, 65, 200}) {
      const int64_t row = lanes + 3;
      std::vector<float> best(static_cast<size_t>(lanes), -7.0F);
      for (int64_t rows = 1; rows <= kFoldRows; ++rows) {
        for (const bool starts : {true, false}) {
          const std::vector<float> values = values_with_special_ones(rows * row, random);
          std::vector<float> expected = best;
          if (starts) std::copy_n(values.begin(), lanes, expected.begin());
          for (int64_t r = starts ? 1 : 0; r < rows; ++r) {
            const std::array<const std::byte*, 2> operands = {
                reinterpret_cast<const std::byte*>(expected.data()),
                reinterpret_cast<const std::byte*>(values.data() + r * row)};
            kernel(operands.data(), reinterpret_cast<std::byte*>(expected.data()), lanes);
          }
          fold->rows(reinterpret_cast<const std::byte*>(values.data()), row * static_cast<int64_t>(sizeof(float)), rows,
                     starts, lanes, reinterpret_cast<std::byte*>(best.data()));
          for (size_t lane = 0; lane < expected.size(); ++lane) {
            EXPECT_TRUE(std::isnan(expected[lane])
                            ? std::isnan(best[lane])
                            : std::bit_cast<uint32_t>(best[lane]) == std::bit_cast<uint32_t>(expected[lane]))
                << rows << " rows, lane " << lane << ": " << best[lane] << " for " << expected[lane];
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace meshd::kernels
