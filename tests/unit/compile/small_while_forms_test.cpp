// Ops that are written anew in loops of small steps, and as they are: the same bits.
#include "service/compile/plan/small_while_forms.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

int64_t small_in(const PlanRef& plan) {
  int64_t count = 0;
  for (const compile::Block& block : plan->blocks) {
    for (const compile::Step& step : block.steps) count += step.small != nullptr ? 1 : 0;
  }
  return count;
}

/// How many of its loops are one step because ops are written anew.
int64_t expect_same_bits(const std::string& text, unsigned seed = 3) {
  const partition::LocalProgram local = local_of(text);
  const PlanRef with = plan_with(local, &compile::PlanSettings::small_while_forms, true);
  const PlanRef without = plan_with(local, &compile::PlanSettings::small_while_forms, false);
  Bench bench({.device_count = 8, .threads = 2});
  const Bits arguments = arguments_of(without, seed);
  EXPECT_EQ(difference(run(bench, with, arguments), run(bench, without, arguments)), "") << text << to_text(*with);
  return small_in(with) - small_in(without);
}

/// x = `body` of x and the argument a, `iterations` times.
std::string loop_of(const std::string& x, const std::string& a, const std::string& body, int64_t iterations = 5,
                    const std::string& sharding = "") {
  return fmt::format(R"(module {{
  sdy.mesh @mesh = <["d"=2]>
  func.func @main(%x0: tensor<{0}>, %a: tensor<{1}>{4}) -> tensor<{0}> {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%i = %zero, %x = %x0) : tensor<i32>, tensor<{0}> cond {{
      %most = stablehlo.constant dense<{3}> : tensor<i32>
      %p = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
{2}
      stablehlo.return %j, %y : tensor<i32>, tensor<{0}>
    }}
    return %w#1 : tensor<{0}>
  }}
}}
)",
                     x, a, body, iterations, sharding);
}

TEST(SmallWhileForms, products_of_few_terms_are_sums_of_terms) {
  struct Case {
    const char *x, *a, *numbers;
    bool is_swapped = false;
  };
  const Case cases[] = {
      {"4xi32", "4x4xi32", "contracting_dims = [0] x [0]"},
      {"4xui32", "4x4xui32", "contracting_dims = [0] x [1]"},
      {"5xi32", "5x5xi32", "contracting_dims = [1] x [0]", true},
      {"8x8xi32", "8x8xi32", "contracting_dims = [1] x [0]"},
      {"3x3xi32", "3x3xi32", "contracting_dims = [0] x [1]"},
      {"2x3x3xi32", "2x3x3xi32", "batching_dims = [0] x [0], contracting_dims = [2] x [1]"},
      {"2x3x3xi32", "3x2x3xi32", "batching_dims = [0] x [1], contracting_dims = [1] x [2]"},
      {"3x2xi32", "2x2xi32", "contracting_dims = [1] x [1]"},
      {"4xi32", "4xi32", "batching_dims = [0] x [0], contracting_dims = [] x []"},
  };
  for (const Case& one : cases) {
    const std::string x = one.x;
    const std::string a = one.a;
    const std::string operands = one.is_swapped ? "%a, %x" : "%x, %a";
    const std::string types =
        one.is_swapped ? fmt::format("tensor<{}>, tensor<{}>", a, x) : fmt::format("tensor<{}>, tensor<{}>", x, a);
    const std::string product =
        fmt::format("      %y = stablehlo.dot_general {}, {} : ({}) -> tensor<{}>", operands, one.numbers, types, x);
    EXPECT_EQ(expect_same_bits(loop_of(x, a, product)), 1) << product;
  }
}

TEST(SmallWhileForms, a_product_over_all_dims_is_a_number) {
  EXPECT_EQ(expect_same_bits(loop_of("2x3xi32", "2x3xi32", R"(
      %d = stablehlo.dot_general %x, %a, contracting_dims = [0, 1] x [0, 1] : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<i32>
      %b = stablehlo.broadcast_in_dim %d, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
      %y = stablehlo.add %b, %x : tensor<2x3xi32>)")),
            1);
}

// Of small whole numbers, whose sums are exact.
TEST(SmallWhileForms, products_of_floats) {
  EXPECT_EQ(expect_same_bits(loop_of("4x4xi32", "4x4xi32", R"(
      %m = stablehlo.constant dense<64> : tensor<4x4xi32>
      %xs = stablehlo.remainder %x, %m : tensor<4x4xi32>
      %as = stablehlo.remainder %a, %m : tensor<4x4xi32>
      %xf = stablehlo.convert %xs : (tensor<4x4xi32>) -> tensor<4x4xf32>
      %af = stablehlo.convert %as : (tensor<4x4xi32>) -> tensor<4x4xf32>
      %d = stablehlo.dot_general %xf, %af, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %y = stablehlo.convert %d : (tensor<4x4xf32>) -> tensor<4x4xi32>)")),
            1);
}

std::string argmax_of(const std::string& result, int64_t dim, const std::string& iota) {
  return fmt::format(R"(
      %n = stablehlo.iota dim = {1} : tensor<{2}xi32>
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %first = stablehlo.constant dense<0> : tensor<i32>
      %s = stablehlo.add %x, %a : tensor<{2}xf32>
      %r:2 = stablehlo.reduce(%s init: %low), (%n init: %first) across dimensions = [{1}] : (tensor<{2}xf32>, tensor<{2}xi32>, tensor<f32>, tensor<i32>) -> (tensor<{0}f32>, tensor<{0}i32>)
       reducer(%l: tensor<f32>, %k: tensor<f32>) (%li: tensor<i32>, %ki: tensor<i32>) {{
        %gt = stablehlo.compare GT, %l, %k, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %ne = stablehlo.compare NE, %l, %l, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %or = stablehlo.or %gt, %ne : tensor<i1>
        %eq = stablehlo.compare EQ, %l, %k, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %lt = stablehlo.compare LT, %li, %ki, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %and = stablehlo.and %eq, %lt : tensor<i1>
        %at = stablehlo.or %or, %and : tensor<i1>
        %v = stablehlo.select %or, %l, %k : tensor<i1>, tensor<f32>
        %i2 = stablehlo.select %at, %li, %ki : tensor<i1>, tensor<i32>
        stablehlo.return %v, %i2 : tensor<f32>, tensor<i32>
      }})",
                     result, dim, iota);
}

TEST(SmallWhileForms, argmax_is_written_item_by_item) {
  for (unsigned seed = 1; seed < 20; ++seed) {
    EXPECT_EQ(expect_same_bits(loop_of("4x6xf32", "4x6xf32", argmax_of("6x", 0, "4x6") + R"(
      %f = stablehlo.convert %r#1 : (tensor<6xi32>) -> tensor<6xf32>
      %b = stablehlo.broadcast_in_dim %f, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
      %y = stablehlo.subtract %b, %x : tensor<4x6xf32>)"),
                               seed),
              1);
    EXPECT_EQ(expect_same_bits(loop_of("7xf32", "7xf32", argmax_of("", 0, "7") + R"(
      %f = stablehlo.convert %r#1 : (tensor<i32>) -> tensor<f32>
      %g = stablehlo.add %f, %r#0 : tensor<f32>
      %b = stablehlo.broadcast_in_dim %g, dims = [] : (tensor<f32>) -> tensor<7xf32>
      %y = stablehlo.subtract %b, %x : tensor<7xf32>)"),
                               seed),
              1);
  }
}

TEST(SmallWhileForms, columns_are_rows_of_the_transposed_array) {
  EXPECT_EQ(expect_same_bits(loop_of("4xf32", "4x6xf32", R"(
      %c = stablehlo.dynamic_slice %a, %zero, %i, sizes = [4, 1] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
      %v = stablehlo.reshape %c : (tensor<4x1xf32>) -> tensor<4xf32>
      %y = stablehlo.subtract %v, %x : tensor<4xf32>)",
                                     9)),
            1)
      << "starts beyond the end, too";
  EXPECT_EQ(expect_same_bits(loop_of("2x3xi32", "2x4x3x5xi32", R"(
      %c = stablehlo.dynamic_slice %a, %zero, %i, %zero, %j, sizes = [2, 1, 3, 1] : (tensor<2x4x3x5xi32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x1x3x1xi32>
      %v = stablehlo.reshape %c : (tensor<2x1x3x1xi32>) -> tensor<2x3xi32>
      %y = stablehlo.subtract %v, %x : tensor<2x3xi32>)")),
            1);
  // An array that changes has no transposed one.
  EXPECT_EQ(expect_same_bits(loop_of("4x6xf32", "4x1xf32", R"(
      %c = stablehlo.dynamic_slice %x, %zero, %i, sizes = [4, 1] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
      %v = stablehlo.subtract %c, %a : tensor<4x1xf32>
      %b = stablehlo.broadcast_in_dim %v, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
      %y = stablehlo.add %b, %x : tensor<4x6xf32>)")),
            0);
}

TEST(SmallWhileForms, a_product_without_terms_is_zero) {
  expect_same_bits(loop_of("4x4xi32", "4x0xi32", R"(
      %b = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x0xi32>) -> tensor<0x4xi32>
      %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x0xi32>, tensor<0x4xi32>) -> tensor<4x4xi32>
      %y = stablehlo.add %x, %d : tensor<4x4xi32>)"));
}

TEST(SmallWhileForms, an_array_is_transposed_once_for_all_columns) {
  const std::string text = loop_of("4xf32", "4x6xf32", R"(
      %c = stablehlo.dynamic_slice %a, %zero, %i, sizes = [4, 1] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
      %e = stablehlo.dynamic_slice %a, %zero, %j, sizes = [4, 1] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
      %d = stablehlo.subtract %c, %e : tensor<4x1xf32>
      %v = stablehlo.reshape %d : (tensor<4x1xf32>) -> tensor<4xf32>
      %y = stablehlo.subtract %v, %x : tensor<4xf32>)");
  EXPECT_EQ(expect_same_bits(text), 1);
  const PlanRef plan = plan_with(local_of(text), &compile::PlanSettings::small_while_forms, true);
  const auto& steps = plan->blocks[0].steps;
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(),
                          [](const compile::Step& step) { return step.name == "stablehlo.transpose"; }),
            1);
}

TEST(SmallWhileForms, other_loops_stay) {
  const std::string product = R"(
      %d = stablehlo.dot_general %x, %a, contracting_dims = [0] x [0] : (tensor<4xi32>, tensor<4x4xi32>) -> tensor<4xi32>)";
  EXPECT_EQ(expect_same_bits(loop_of("4xi32", "4x4xi32", product + R"(
      %y = "stablehlo.sort"(%d) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%l: tensor<i32>, %m: tensor<i32>):
        %q = stablehlo.compare LT, %l, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %q : tensor<i1>
      }) : (tensor<4xi32>) -> tensor<4xi32>)")),
            0)
      << "a step that is not small";
  EXPECT_EQ(expect_same_bits(loop_of("9xi32", "9x9xi32", R"(
      %y = stablehlo.dot_general %x, %a, contracting_dims = [0] x [0] : (tensor<9xi32>, tensor<9x9xi32>) -> tensor<9xi32>)")),
            0)
      << "more elements";
  EXPECT_EQ(expect_same_bits(loop_of("4xi32", "4x4xi32", product + "\n      %y = stablehlo.negate %d : tensor<4xi32>",
                                     5, R"( {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>})")),
            0)
      << "parts of the sum are on other devices";
}

}  // namespace
}  // namespace meshd::test
