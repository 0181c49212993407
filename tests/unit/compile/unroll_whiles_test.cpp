// Loops of a few iterations, as loops and one iteration after the other: the same bits.
#include "service/compile/plan/unroll_whiles.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

size_t whiles_in(const PlanRef& plan) {
  size_t count = 0;
  for (const compile::Block& block : plan->blocks) {
    for (const compile::Step& step : block.steps) count += step.kind == compile::StepKind::kWhile ? 1 : 0;
  }
  return count;
}

/// How many loops are left.
size_t expect_same_bits(const std::string& text) {
  const partition::LocalProgram local = local_of(text);
  const PlanRef with = plan_with(local, &compile::PlanSettings::unroll_whiles, true);
  const PlanRef without = plan_with(local, &compile::PlanSettings::unroll_whiles, false);
  Bench bench({.device_count = 8, .threads = 2});
  const Bits arguments = arguments_of(without, 3);
  EXPECT_EQ(difference(run(bench, with, arguments), run(bench, without, arguments)), "") << text << to_text(*with);
  return whiles_in(with);
}

/// Carries a and b, which change places, c, which stays, and a row of four numbers, of which one is used each time.
std::string loop_of(int64_t iterations, const std::string& dims, const std::string& inside = "",
                    const std::string& result = "%y") {
  return fmt::format(R"(module {{
  sdy.mesh @mesh = <["d"=4]>
  func.func @main(%a0: tensor<{0}xui32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"d"}}]>}}, %b0: tensor<{0}xui32>, %c0: tensor<ui32>) -> (tensor<{0}xui32>, tensor<{0}xui32>, tensor<ui32>, tensor<4xui32>) {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r0 = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>
    %s0 = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>
    %w:6 = stablehlo.while(%i = %zero, %a = %a0, %b = %b0, %c = %c0, %r = %r0, %s = %s0) : tensor<i32>, tensor<{0}xui32>, tensor<{0}xui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32> cond {{
      %most = stablehlo.constant dense<{1}> : tensor<i32>
      %p = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %t = stablehlo.slice %r [2:3] : (tensor<4xui32>) -> tensor<1xui32>
      %u = stablehlo.reshape %t : (tensor<1xui32>) -> tensor<ui32>
      %v = stablehlo.broadcast_in_dim %u, dims = [] : (tensor<ui32>) -> tensor<{0}xui32>
      %x = stablehlo.shift_left %a, %v : tensor<{0}xui32>
      %cs = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<{0}xui32>
      %x2 = stablehlo.add %x, %cs : tensor<{0}xui32>
      %y = stablehlo.xor %x2, %b : tensor<{0}xui32>
{2}
      stablehlo.return %j, %b, {3}, %c, %s, %r : tensor<i32>, tensor<{0}xui32>, tensor<{0}xui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    }}
    return %w#1, %w#2, %w#3, %w#4 : tensor<{0}xui32>, tensor<{0}xui32>, tensor<ui32>, tensor<4xui32>
  }}
}}
)",
                     dims, iterations, inside, result);
}

TEST(UnrollWhiles, short_loops_are_written_one_iteration_after_the_other) {
  for (const int64_t iterations : {0, 1, 2, 5, 8}) {
    for (const auto* const dims : {"4", "100", "40000"}) EXPECT_EQ(expect_same_bits(loop_of(iterations, dims)), 0U);
  }
}

TEST(UnrollWhiles, other_loops_stay) {
  EXPECT_EQ(expect_same_bits(loop_of(9, "100")), 1U) << "more iterations";
  EXPECT_EQ(expect_same_bits(loop_of(5, "64", R"(
      %sorted = "stablehlo.sort"(%y) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%l: tensor<ui32>, %m: tensor<ui32>):
        %q = stablehlo.compare LT, %l, %m, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
        stablehlo.return %q : tensor<i1>
      }) : (tensor<64xui32>) -> tensor<64xui32>)",
                                     "%sorted")),
            1U)
      << "more than elements by themselves";
}

// The inner loop is gone, the outer one has small steps alone.
TEST(UnrollWhiles, loops_in_loops) {
  const std::string inner = R"(
      %w2:2 = stablehlo.while(%k = %i, %e = %y) : tensor<i32>, tensor<100xui32> cond {
        %f = stablehlo.constant dense<3> : tensor<i32>
        %g = stablehlo.compare LT, %k, %f, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
      } do {
        %h = stablehlo.add %k, %one : tensor<i32>
        %e2 = stablehlo.multiply %e, %cs : tensor<100xui32>
        stablehlo.return %h, %e2 : tensor<i32>, tensor<100xui32>
      })";
  EXPECT_EQ(expect_same_bits(loop_of(20, "100", inner, "%w2#1")), 2U) << "how often it runs depends on %i";
  std::string known = inner;
  known.replace(known.find("%k = %i"), 7, "%k = %zero");
  EXPECT_EQ(expect_same_bits(loop_of(20, "100", known, "%w2#1")), 1U);
  EXPECT_EQ(expect_same_bits(loop_of(4, "100", known, "%w2#1")), 0U);
}

}  // namespace
}  // namespace meshd::test
