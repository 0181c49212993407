// Loops that carry arrays put together of rows, as they are and row by row: the same bits.
#include "service/compile/plan/split_carries.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

/// Whether the pass had something to do.
bool expect_same_bits(const std::string& text) {
  const partition::LocalProgram local = local_of(text);
  const PlanRef with = plan_with(local, &compile::PlanSettings::split_carries, true);
  const PlanRef without = plan_with(local, &compile::PlanSettings::split_carries, false);
  Bench bench({.device_count = 8, .threads = 2});
  const Bits arguments = arguments_of(without, 3);
  EXPECT_EQ(difference(run(bench, with, arguments), run(bench, without, arguments)), "") << text << to_text(*with);
  return compile::split_carries(local, {}).has_value();
}

/// A state of three rows of `lanes` along `dim`, of which `%n` is the new one: rows r0 to r2 give rows t0 to t2, which
/// %c is made of.
std::string loop_of(int64_t lanes, int dim, const std::string& more, const std::string& next = "%n",
                    const std::string& sharding = "", const std::string& condition = "%p") {
  const auto shape = [&](int64_t rows) {
    return dim == 0 ? fmt::format("tensor<{}x{}xf32>", rows, lanes) : fmt::format("tensor<{}x{}xf32>", lanes, rows);
  };
  std::string slices;
  for (int row = 0; row < 3; ++row) {
    const std::string of_rows = fmt::format("{}:{}", row, row + 1);
    const std::string all = fmt::format("0:{}", lanes);
    slices += fmt::format("      %r{} = stablehlo.slice %s [{}, {}] : ({}) -> {}\n", row, dim == 0 ? of_rows : all,
                          dim == 0 ? all : of_rows, shape(3), shape(1));
  }
  return fmt::format(R"(module {{
  sdy.mesh @mesh = <["d"=4]>
  func.func @main(%s0: {0} {6}, %ys0: tensor<9x{2}xf32>, %h: tensor<f32>) -> ({0}, tensor<9x{2}xf32>) {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:3 = stablehlo.while(%i = %zero, %s = %s0, %ys = %ys0) : tensor<i32>, {0}, tensor<9x{2}xf32> cond {{
      %most = stablehlo.constant dense<12> : tensor<i32>
      %p = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %first = stablehlo.slice %s [0:1, 0:1] : ({0}) -> tensor<1x1xf32>
      %one1 = stablehlo.reshape %first : (tensor<1x1xf32>) -> tensor<f32>
      %far = stablehlo.constant dense<3.0> : tensor<f32>
      %q = stablehlo.compare LT, %one1, %far, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %both = stablehlo.and %p, %q : tensor<i1>
      stablehlo.return {7} : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
{3}      %t0 = stablehlo.subtract %r1, %r0 : {1}
      %t1 = stablehlo.multiply %r0, %r2 : {1}
      %t2 = stablehlo.sine %r1 : {1}
      %c = stablehlo.concatenate %t0, %t1, %t2, dim = {8} : ({1}, {1}, {1}) -> {0}
      %k = stablehlo.constant dense<0.01> : {0}
      %m = stablehlo.multiply %k, %c : {0}
      %hs = stablehlo.broadcast_in_dim %h, dims = [] : (tensor<f32>) -> {0}
      %a = stablehlo.add %s, %m : {0}
      %n = stablehlo.maximum %a, %hs : {0}
{4}
      stablehlo.return %j, {5}, %ys2 : tensor<i32>, {0}, tensor<9x{2}xf32>
    }}
    return %w#1, %w#2 : {0}, tensor<9x{2}xf32>
  }}
}}
)",
                     shape(3), shape(1), dim == 0 ? fmt::format("3x{}", lanes) : fmt::format("{}x3", lanes), slices,
                     more, next, sharding, condition, dim);
}

/// The new state as a row of an array.
std::string stacked(int64_t lanes, int dim) {
  const std::string shape = dim == 0 ? fmt::format("3x{}", lanes) : fmt::format("{}x3", lanes);
  return fmt::format(R"(      %z = stablehlo.constant dense<0> : tensor<i32>
      %u = stablehlo.broadcast_in_dim %n, dims = [1, 2] : (tensor<{0}xf32>) -> tensor<1x{0}xf32>
      %ys2 = stablehlo.dynamic_update_slice %ys, %u, %i, %z, %z : (tensor<9x{0}xf32>, tensor<1x{0}xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<9x{0}xf32>)",
                     shape);
}

TEST(SplitCarries, states_made_of_rows_are_carried_as_rows) {
  for (const int dim : {0, 1}) {
    for (const int64_t lanes : {22, 40, 64, 65, 1000}) {
      EXPECT_TRUE(expect_same_bits(loop_of(lanes, dim, stacked(lanes, dim)))) << lanes;
      EXPECT_TRUE(expect_same_bits(loop_of(lanes, dim, stacked(lanes, dim), "%n", "", "%both"))) << lanes;
    }
  }
  EXPECT_FALSE(expect_same_bits(loop_of(5, 0, stacked(5, 0)))) << "few elements";
}

// What reads all rows finds them put together again.
TEST(SplitCarries, other_ops_read_whole_arrays) {
  const std::string reversed = R"(      %v = stablehlo.reverse %n, dims = [0] : tensor<3x40xf32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %u = stablehlo.reshape %v : (tensor<3x40xf32>) -> tensor<1x3x40xf32>
      %ys2 = stablehlo.dynamic_update_slice %ys, %u, %i, %z, %z : (tensor<9x3x40xf32>, tensor<1x3x40xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<9x3x40xf32>)";
  EXPECT_TRUE(expect_same_bits(loop_of(40, 0, reversed)));
  EXPECT_FALSE(expect_same_bits(loop_of(40, 0, reversed, "%v"))) << "the next state is not made of rows";
}

// A row of one state is another state, which is split along another dim.
TEST(SplitCarries, rows_of_rows) {
  const std::string text = R"(module {
  func.func @main(%u0: tensor<3x32xf32>, %v0: tensor<2x3x32xf32>) -> (tensor<3x32xf32>, tensor<2x3x32xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:3 = stablehlo.while(%i = %zero, %u = %u0, %v = %v0) : tensor<i32>, tensor<3x32xf32>, tensor<2x3x32xf32> cond {
      %most = stablehlo.constant dense<50> : tensor<i32>
      %p = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %a = stablehlo.slice %u [0:1, 0:32] : (tensor<3x32xf32>) -> tensor<1x32xf32>
      %b = stablehlo.slice %u [1:2, 0:32] : (tensor<3x32xf32>) -> tensor<1x32xf32>
      %c = stablehlo.slice %u [2:3, 0:32] : (tensor<3x32xf32>) -> tensor<1x32xf32>
      %s = stablehlo.sine %a : tensor<1x32xf32>
      %u2 = stablehlo.concatenate %b, %c, %s, dim = 0 : (tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<3x32xf32>
      %x = stablehlo.broadcast_in_dim %u2, dims = [1, 2] : (tensor<3x32xf32>) -> tensor<1x3x32xf32>
      %y = stablehlo.slice %v [0:1, 0:3, 0:32] : (tensor<2x3x32xf32>) -> tensor<1x3x32xf32>
      %z = stablehlo.add %x, %y : tensor<1x3x32xf32>
      %v2 = stablehlo.concatenate %x, %z, dim = 0 : (tensor<1x3x32xf32>, tensor<1x3x32xf32>) -> tensor<2x3x32xf32>
      stablehlo.return %j, %u2, %v2 : tensor<i32>, tensor<3x32xf32>, tensor<2x3x32xf32>
    }
    return %w#1, %w#2 : tensor<3x32xf32>, tensor<2x3x32xf32>
  }
}
)";
  EXPECT_TRUE(expect_same_bits(text));
}

// What reads its operands several times is looked at once: paths through it are more than can be walked.
TEST(SplitCarries, many_paths_to_a_value_are_one) {
  std::string rounds;
  std::string last = "%s";
  for (int round = 0; round < 40; ++round) {
    const std::string next = fmt::format("%c{}", round);
    rounds += fmt::format("      {0} = stablehlo.clamp {1}, {1}, {1} : tensor<3x40xf32>\n", next, last);
    last = next;
  }
  const std::string text = fmt::format(R"(module {{
  func.func @main(%s0: tensor<3x40xf32>) -> tensor<3x40xf32> {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%i = %zero, %s = %s0) : tensor<i32>, tensor<3x40xf32> cond {{
      %most = stablehlo.constant dense<9> : tensor<i32>
      %p = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
{}      stablehlo.return %j, {} : tensor<i32>, tensor<3x40xf32>
    }}
    return %w#1 : tensor<3x40xf32>
  }}
}}
)",
                                       rounds, last);
  EXPECT_FALSE(expect_same_bits(text));
}

TEST(SplitCarries, rows_may_be_sharded_but_not_dealt_to_devices) {
  EXPECT_TRUE(expect_same_bits(
      loop_of(400, 0, stacked(400, 0), "%n", R"({sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}]>})")));
  EXPECT_FALSE(expect_same_bits(
      loop_of(400, 0, stacked(400, 0), "%n", R"({sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>})")));
}

}  // namespace
}  // namespace meshd::test
