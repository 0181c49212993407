// Sums along leading dims of values that are computed on the way: the bits of sums of the same values in memory.
#include <gtest/gtest.h>

#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

/// The sum of x * x over the first dim of (rows, columns).
std::string sum_of_squares(int64_t rows, int64_t columns, const std::string& dtype, const std::string& zero) {
  const std::string row = "tensor<" + std::to_string(columns) + "x" + dtype + ">";
  const std::string all = "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "x" + dtype + ">";
  return "func.func @main(%x: " + all + ") -> " + row + " {\n  %zero = stablehlo.constant dense<" + zero +
         "> : tensor<" + dtype + ">\n  %s = stablehlo.multiply %x, %x : " + all +
         "\n  %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (" + all +
         ", tensor<" + dtype + ">) -> " + row + "\n  return %r : " + row + "\n}\n";
}

TEST(ComputedSums, have_the_bits_of_sums_of_stored_values) {
  Bench bench({.device_count = 1, .threads = 2});
  unsigned seed = 1;
  for (const auto& [dtype, zero] : std::vector<std::pair<std::string, std::string>>{
           {"f32", "0.0"}, {"f64", "0.0"}, {"bf16", "0.0"}, {"i32", "0"}, {"i8", "0"}}) {
    for (const int64_t rows : {1, 7, 8, 9, 150, 1000}) {
      for (const int64_t columns : {512, 1000, 4097, 9000}) {
        const std::string text = sum_of_squares(rows, columns, dtype, zero);
        SCOPED_TRACE(text);
        const partition::LocalProgram local = local_of(text);
        const compile::PlanRef fused = plan_with(local, &compile::PlanSettings::fuse, true);
        const compile::PlanRef stored = plan_with(local, &compile::PlanSettings::fuse, false);
        ASSERT_EQ(fused->blocks[0].steps.size(), 1U);
        ASSERT_GT(stored->blocks[0].steps.size(), 1U);
        const Bits arguments = arguments_of(fused, ++seed);
        ASSERT_EQ(difference(run(bench, fused, arguments), run(bench, stored, arguments)), "");
      }
    }
  }
}

}  // namespace
}  // namespace meshd::test
