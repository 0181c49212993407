// stablehlo.cholesky of matrices that are factored block by block.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "service/ops/kernel_interface.h"
#include "service/tensor/half.h"
#include "tests/support/parsed_instance.h"

namespace meshd::test {
namespace {

using Cut = Instance::Cut;
constexpr int64_t kOrder = 400;
constexpr int64_t kCount = kOrder * kOrder;

std::string text(const std::string& element, bool lower) {
  const std::string type = "tensor<2x400x400x" + element + ">";
  return "module @jit_f {\n  func.func public @main(%arg0: " + type + ") -> " + type +
         " {\n    %0 = \"stablehlo.cholesky\"(%arg0) <{lower = " + (lower ? "true" : "false") + "}> : (" + type +
         ") -> " + type + "\n    return %0 : " + type + "\n  }\n}\n";
}

/// Twice a symmetric matrix with a heavy diagonal; the second one has a pivot that is not positive.
std::vector<float> matrices() {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> small(-1, 1);
  std::vector<float> out(2 * kCount);
  for (int64_t i = 0; i < kOrder; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const float value = i == j ? 64.0F : std::round(small(random) * 8) / 4;
      for (const int64_t at : {i * kOrder + j, j * kOrder + i})
        out[static_cast<size_t>(at)] = out[static_cast<size_t>(kCount + at)] = value;
    }
  }
  out[static_cast<size_t>(kCount + 350 * kOrder + 350)] = -1;
  return out;
}

void expect_factors(const std::vector<float>& factors, const std::vector<float>& a, bool lower, double error) {
  const auto at = [&](int64_t i, int64_t j) {
    return static_cast<double>(factors[static_cast<size_t>(lower ? i * kOrder + j : j * kOrder + i)]);
  };
  for (int64_t i = 0; i < kOrder; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (int64_t k = 0; k <= j; ++k) sum += at(i, k) * at(j, k);
      ASSERT_NEAR(sum, a[static_cast<size_t>(i * kOrder + j)], error) << i << ", " << j;
      ASSERT_TRUE(j == i || at(j, i) == 0) << "the other side of the diagonal";
    }
  }
  for (int64_t i = 0; i < kCount; ++i) ASSERT_TRUE(std::isnan(factors[static_cast<size_t>(kCount + i)]));
}

TEST(cholesky, large_factors_are_complete_and_failed_ones_are_nan) {
  const std::vector<float> a = matrices();
  for (const bool lower : {true, false}) {
    const ParsedInstance cholesky(text("f32", lower), "stablehlo.cholesky");
    const ops::PreparedKernel kernel =
        std::get<ops::LocalKernel>(cholesky.instance.def->body)
            .prepare(cholesky.instance.view(cholesky.operand_types, cholesky.instance.declared));
    EXPECT_FALSE(kernel.barriers.empty());
    const std::vector<Array> operands = {f32({2, kOrder, kOrder}, a)};
    const std::vector<float> factors = cholesky.instance.run(operands)[0].values<float>();
    expect_factors(factors, a, lower, 1e-3);
    for (const auto& [cut, in_place] : {std::pair(Cut::kBackwards, false), std::pair(Cut::kOneCall, true)}) {
      const std::vector<float> again = cholesky.instance.run(operands, cut, in_place)[0].values<float>();
      EXPECT_EQ(std::memcmp(again.data(), factors.data(), factors.size() * sizeof(float)), 0);
    }
  }
}

TEST(cholesky, large_factors_of_halves_are_computed_in_float) {
  const std::vector<float> a = matrices();
  std::vector<uint16_t> halves;
  for (const float value : a) halves.push_back(tensor::float_to_bfloat16(value));
  const ParsedInstance cholesky(text("bf16", true), "stablehlo.cholesky");
  const Array operand = Array::of<uint16_t>(tensor::DType::kBfloat16, {2, kOrder, kOrder}, halves);
  const std::vector<uint16_t> got = cholesky.instance.run({operand})[0].values<uint16_t>();
  std::vector<float> factors;
  for (const uint16_t value : got) factors.push_back(tensor::bfloat16_to_float(value));
  expect_factors(factors, a, true, 2.0);
}

}  // namespace
}  // namespace meshd::test
