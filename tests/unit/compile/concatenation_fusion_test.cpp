// Concatenations that read elements of other values where they are, or compute their operands: the bits of those that
// read copies.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

/// The names of the steps with fusion.
std::vector<std::string> expect_same_bits(const std::string& text) {
  const partition::LocalProgram local = local_of(text);
  const compile::PlanRef fused = plan_with(local, &compile::PlanSettings::fuse, true);
  const compile::PlanRef stored = plan_with(local, &compile::PlanSettings::fuse, false);
  Bench bench({.device_count = 8, .threads = 2});
  const Bits arguments = arguments_of(stored, 5);
  EXPECT_EQ(difference(run(bench, fused, arguments), run(bench, stored, arguments)), "") << text << to_text(*fused);
  std::vector<std::string> names;
  for (const compile::Step& step : fused->blocks[0].steps) names.push_back(step.name);
  return names;
}

/// x rolled along a dim, of which `shift` elements come first.
std::string rolled(int64_t rows, int64_t columns, size_t dim, int64_t shift, const std::string& dtype,
                   const std::string& sharding = "") {
  const int64_t sizes[] = {rows, columns};
  const auto slice = [&](int64_t from, int64_t to) {
    return dim == 0 ? fmt::format("[{}:{}, 0:{}]", from, to, columns) : fmt::format("[0:{}, {}:{}]", rows, from, to);
  };
  const auto part = [&](int64_t size) {
    return dim == 0 ? fmt::format("tensor<{}x{}x{}>", size, columns, dtype)
                    : fmt::format("tensor<{}x{}x{}>", rows, size, dtype);
  };
  const int64_t size = sizes[dim];
  return fmt::format(R"(
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: {0}{6}) -> {0} {{
  %a = stablehlo.slice %x {1} : ({0}) -> {2}
  %b = stablehlo.slice %x {3} : ({0}) -> {4}
  %c = stablehlo.concatenate %a, %b, dim = {5} : ({2}, {4}) -> {0}
  return %c : {0}
}}
)",
                     part(size), slice(size - shift, size), part(shift), slice(0, size - shift), part(size - shift),
                     dim, sharding);
}

TEST(ConcatenatedViews, a_roll_is_one_step) {
  for (const auto* const dtype : {"f32", "i8", "complex<f32>", "i1"}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{4, 5}, {64, 100}, {300, 1000}}) {
      for (const size_t dim : {0, 1}) {
        for (const int64_t shift : {1, 3}) {
          const auto names = expect_same_bits(rolled(rows, columns, dim, shift, dtype));
          EXPECT_EQ(names, std::vector<std::string>{"fused slice concatenate (3 ops)"});
        }
      }
    }
  }
}

TEST(ConcatenatedViews, rolls_of_shards) {
  const std::string by_rows = R"( {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})";
  const auto names = expect_same_bits(rolled(64, 100, 1, 3, "f32", by_rows));
  EXPECT_NE(std::find(names.begin(), names.end(), "fused slice concatenate (3 ops)"), names.end());
  expect_same_bits(rolled(64, 100, 0, 3, "f32", by_rows));
}

TEST(ConcatenatedViews, any_way_of_reading_and_whole_operands_beside) {
  const auto names = expect_same_bits(R"(
func.func @main(%x: tensor<6x4xf32>, %y: tensor<4x6xf32>, %z: tensor<4xf32>) -> tensor<23x4xf32> {
  %a = stablehlo.reverse %x, dims = [0, 1] : tensor<6x4xf32>
  %b = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %c = stablehlo.broadcast_in_dim %z, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %d = stablehlo.slice %x [1:6:2, 0:4] : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %r = stablehlo.concatenate %a, %b, %c, %d, %x, dim = 0 : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<6x4xf32>) -> tensor<23x4xf32>
  return %r : tensor<23x4xf32>
})");
  EXPECT_EQ(names, (std::vector<std::string>{"stablehlo.transpose", "fused reverse concatenate (4 ops)"}));
}

TEST(ConcatenatedViews, what_others_read_is_copied) {
  const auto names = expect_same_bits(R"(
func.func @main(%x: tensor<100xf32>) -> (tensor<100xf32>, tensor<60xf32>) {
  %a = stablehlo.slice %x [40:100] : (tensor<100xf32>) -> tensor<60xf32>
  %b = stablehlo.slice %x [0:40] : (tensor<100xf32>) -> tensor<40xf32>
  %c = stablehlo.concatenate %a, %b, dim = 0 : (tensor<60xf32>, tensor<40xf32>) -> tensor<100xf32>
  return %c, %a : tensor<100xf32>, tensor<60xf32>
})");
  EXPECT_EQ(names.size(), 2U);
}

// Else the array would have to stay, and what is written into it would need another one.
TEST(ConcatenatedViews, arrays_do_not_live_longer_for_it) {
  const auto names = expect_same_bits(R"(
func.func @main(%x: tensor<4096xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<4096xf32>) {
  %s = stablehlo.sine %x : tensor<4096xf32>
  %a = stablehlo.slice %s [0:4] : (tensor<4096xf32>) -> tensor<4xf32>
  %u = stablehlo.slice %x [7:8] : (tensor<4096xf32>) -> tensor<1xf32>
  %t = stablehlo.dynamic_update_slice %s, %u, %i : (tensor<4096xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4096xf32>
  %b = stablehlo.slice %t [0:4] : (tensor<4096xf32>) -> tensor<4xf32>
  %c = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %c, %t : tensor<8xf32>, tensor<4096xf32>
})");
  EXPECT_NE(std::find(names.begin(), names.end(), "fused slice concatenate (2 ops)"), names.end()) << "of t alone";
  EXPECT_EQ(std::find(names.begin(), names.end(), "fused slice concatenate (3 ops)"), names.end());
}

TEST(ConcatenatedViews, steps_without_results_may_be_between) {
  LocalBuilder b({1});
  const LocalId x = b.argument("100xf32");
  const auto slice = [&](int64_t from, int64_t to) {
    const LocalId out = b.value(std::to_string(to - from) + "xf32");
    b.op("stablehlo.slice", {x}, {out},
         {{"start_indices", attribute(ir::IntArrayAttr{{from}, "i64"})},
          {"limit_indices", attribute(ir::IntArrayAttr{{to}, "i64"})},
          {"strides", attribute(ir::IntArrayAttr{{1}, "i64"})}});
    return out;
  };
  const LocalId first = slice(30, 100);
  b.effect({b.splat<int32_t>("i32", 1)}, {}, false);
  const LocalId second = slice(0, 30);
  const LocalId out = b.like(x);
  b.op("stablehlo.concatenate", {first, second}, {out}, {{"dimension", attribute(ir::IntegerAttr{0, "i64"})}});
  b.result(out);
  const compile::PlanRef plan = compile::make_plan(b.finish());
  const auto& steps = plan->blocks[0].steps;
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(), [](const auto& step) { return step.results.empty(); }), 1);
  EXPECT_EQ(steps.back().name, "fused slice concatenate (2 ops)") << to_text(*plan);
}

// What a loop carries is written where it was read, unless the concatenation reads it there.
TEST(ConcatenatedViews, values_that_a_loop_carries) {
  expect_same_bits(R"(
func.func @main(%x0: tensor<200xf32>) -> tensor<200xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%i = %zero, %x = %x0) : tensor<i32>, tensor<200xf32>
  cond {
    %n = stablehlo.constant dense<7> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %a = stablehlo.slice %x [1:200] : (tensor<200xf32>) -> tensor<199xf32>
    %b = stablehlo.slice %x [0:1] : (tensor<200xf32>) -> tensor<1xf32>
    %c = stablehlo.concatenate %a, %b, dim = 0 : (tensor<199xf32>, tensor<1xf32>) -> tensor<200xf32>
    %y = stablehlo.subtract %c, %x : tensor<200xf32>
    %d = stablehlo.slice %y [3:200] : (tensor<200xf32>) -> tensor<197xf32>
    %e = stablehlo.slice %y [0:3] : (tensor<200xf32>) -> tensor<3xf32>
    %z = stablehlo.concatenate %d, %e, dim = 0 : (tensor<197xf32>, tensor<3xf32>) -> tensor<200xf32>
    stablehlo.return %j, %z : tensor<i32>, tensor<200xf32>
  }
  return %w#1 : tensor<200xf32>
})");
}

/// Halves of rows turned by angles: a rotary embedding.
std::string rotary(int64_t rows, int64_t half, const std::string& dtype, size_t dim, const std::string& sharding = "") {
  const auto type = [&](int64_t parts) {
    return dim == 1 ? fmt::format("tensor<{}x{}x{}>", rows, half * parts, dtype)
                    : fmt::format("tensor<{}x{}x{}>", rows * parts, half, dtype);
  };
  const auto slice = [&](int64_t part) {
    return dim == 1 ? fmt::format("[0:{}, {}:{}]", rows, part * half, (part + 1) * half)
                    : fmt::format("[{}:{}, 0:{}]", part * rows, (part + 1) * rows, half);
  };
  return fmt::format(R"(
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: {0}{6}, %r: tensor<{7}x{8}>) -> {0} {{
  %c = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<{7}x{8}>) -> {1}
  %a = stablehlo.slice %x {2} : ({0}) -> {1}
  %b = stablehlo.slice %x {3} : ({0}) -> {1}
  %ac = stablehlo.multiply %a, %c : {1}
  %s = stablehlo.negate %b : {1}
  %p = stablehlo.add %ac, %s : {1}
  %bc = stablehlo.multiply %b, %c : {1}
  %q = stablehlo.add %bc, %a : {1}
  %y = stablehlo.concatenate %p, %q, dim = {5} : ({1}, {1}) -> {0}
  return %y : {0}
}}
)",
                     type(2), type(1), slice(0), slice(1), "", dim, sharding, half, dtype);
}

TEST(ConcatenatedLoops, are_computed_where_they_belong) {
  for (const auto* const dtype : {"f32", "bf16", "i8", "complex<f32>", "f64"}) {
    for (const auto& [rows, half] :
         std::vector<std::pair<int64_t, int64_t>>{{40'000, 1}, {20'000, 3}, {2'000, 64}, {3, 50'000}}) {
      for (const size_t dim : {0, 1}) {
        const auto names = expect_same_bits(rotary(rows, half, dtype, dim));
        EXPECT_EQ(names, std::vector<std::string>{"fused add concatenate (3 ops)"}) << dtype << rows << "x" << half;
      }
    }
  }
}

TEST(ConcatenatedLoops, of_shards) {
  for (const int64_t rows : {2'000, 2'001}) {
    const auto names =
        expect_same_bits(rotary(rows, 64, "f32", 1, R"( {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})"));
    EXPECT_NE(std::find(names.begin(), names.end(), "fused add concatenate (3 ops)"), names.end());
    expect_same_bits(rotary(rows, 64, "f32", 1, R"( {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})"));
    expect_same_bits(rotary(rows, 64, "f32", 0, R"( {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})"));
  }
}

TEST(ConcatenatedLoops, of_small_results_stay) {
  const auto names = expect_same_bits(rotary(10, 8, "f32", 1));
  EXPECT_EQ(names.back(), "stablehlo.concatenate");
}

/// Two loops, of which the second has two results, and what reads them besides.
std::string with_readers(const std::string& results, const std::string& types) {
  return fmt::format(R"(
func.func @main(%x: tensor<30000xf32>, %y: tensor<30000xf32>) -> (tensor<30000x3xf32>{1}) {{
  %a = stablehlo.sine %x : tensor<30000xf32>
  %b = stablehlo.add %x, %y : tensor<30000xf32>
  %c = stablehlo.tanh %b : tensor<30000xf32>
  %a1 = stablehlo.reshape %a : (tensor<30000xf32>) -> tensor<30000x1xf32>
  %b1 = stablehlo.reshape %b : (tensor<30000xf32>) -> tensor<30000x1xf32>
  %c1 = stablehlo.reshape %c : (tensor<30000xf32>) -> tensor<30000x1xf32>
  %z = stablehlo.concatenate %c1, %a1, %b1, dim = 1 : (tensor<30000x1xf32>, tensor<30000x1xf32>, tensor<30000x1xf32>) -> tensor<30000x3xf32>
  return %z{0} : tensor<30000x3xf32>{1}
}})",
                     results, types);
}

TEST(ConcatenatedLoops, of_several_results_and_names_of_the_same_bytes) {
  EXPECT_EQ(expect_same_bits(with_readers("", "")).size(), 1U);
  // A result that is read elsewhere has memory, and its loop stays.
  const auto names = expect_same_bits(with_readers(", %b", ", tensor<30000xf32>"));
  EXPECT_EQ(names.size(), 2U);
  EXPECT_EQ(expect_same_bits(with_readers(", %b, %a", ", tensor<30000xf32>, tensor<30000xf32>")).size(), 3U);
}

// Of few columns one loop makes all, whatever they read.
TEST(ConcatenatedLoops, of_columns_are_one) {
  for (const auto* const dtype : {"f32", "bf16", "i8", "complex<f64>"}) {
    for (const int columns : {2, 3, 4, 5}) {
      const std::string type = fmt::format("tensor<80001x{}>", dtype);
      const std::string column = fmt::format("tensor<80001x1x{}>", dtype);
      const std::string result = fmt::format("tensor<80001x{}x{}>", columns, dtype);
      std::string arguments, body, operands, types;
      for (int k = 0; k < columns; ++k) {
        const char* const comma = k == 0 ? "" : ", ";
        arguments += fmt::format("{}%x{}: {}", comma, k, type);
        body += fmt::format("  %a{0} = stablehlo.add %x{0}, %x{0} : {1}\n", k, type);
        body += fmt::format("  %b{0} = stablehlo.reshape %a{0} : ({1}) -> {2}\n", k, type, column);
        operands += fmt::format("{}%b{}", comma, k);
        types += fmt::format("{}{}", comma, column);
      }
      const auto names = expect_same_bits(fmt::format(
          "func.func @main({}) -> {} {{\n{}  %z = stablehlo.concatenate {}, dim = 1 : ({}) -> {}\n  return %z : {}\n}}",
          arguments, result, body, operands, types, result, result));
      EXPECT_EQ(names, std::vector<std::string>{fmt::format("fused add concatenate ({} ops)", columns + 1)});
    }
  }
}

TEST(ConcatenatedLoops, that_count_along_a_dim_stay) {
  const auto names = expect_same_bits(R"(
func.func @main(%x: tensor<200x100xf32>) -> tensor<200x200xf32> {
  %i = stablehlo.iota dim = 1 : tensor<200x100xf32>
  %a = stablehlo.add %x, %i : tensor<200x100xf32>
  %b = stablehlo.sine %x : tensor<200x100xf32>
  %z = stablehlo.concatenate %a, %b, dim = 1 : (tensor<200x100xf32>, tensor<200x100xf32>) -> tensor<200x200xf32>
  return %z : tensor<200x200xf32>
})");
  EXPECT_EQ(names.back(), "fused sine concatenate (2 ops)");
  EXPECT_EQ(names.size(), 2U);
}

// Loops behind a reduction of the same rows pass over these once, with it.
TEST(ConcatenatedLoops, that_belong_to_rows_stay) {
  const auto names = expect_same_bits(R"(
func.func @main(%x: tensor<200x100xf32>) -> tensor<200x200xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<200x100xf32>, tensor<f32>) -> tensor<200xf32>
  %t = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<200xf32>) -> tensor<200x100xf32>
  %a = stablehlo.divide %x, %t : tensor<200x100xf32>
  %z = stablehlo.concatenate %x, %a, dim = 1 : (tensor<200x100xf32>, tensor<200x100xf32>) -> tensor<200x200xf32>
  return %z : tensor<200x200xf32>
})");
  EXPECT_EQ(names.back(), "stablehlo.concatenate");
  EXPECT_EQ(names.front(), "fused rows reduce .. divide (2 loops)");
}

// A sum of two values that die with it is less than these: they would live until the concatenation, beside another
// part.
TEST(ConcatenatedLoops, that_read_much_that_dies_stay) {
  std::string text = "func.func @main(%x: tensor<40000xf32>) -> tensor<80000xf32> {\n";
  const std::string type = "tensor<40000xf32>";
  for (int i = 0; i < 5; ++i)
    text += fmt::format(R"(  %s{0} = "stablehlo.sort"(%x) <{{dimension = 0 : i64}}> ({{
    ^bb0(%a{0}: tensor<f32>, %b{0}: tensor<f32>):
      %m{0} = stablehlo.constant dense<{0}.5> : tensor<f32>
      %d{0} = stablehlo.multiply %a{0}, %m{0} : tensor<f32>
      %e{0} = stablehlo.subtract %d{0}, %b{0} : tensor<f32>
      %p{0} = stablehlo.compare LT, %d{0}, %e{0} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p{0} : tensor<i1>
  }}) : ({1}) -> {1}
)",
                        i, type);
  text += fmt::format(R"(  %t1 = stablehlo.add %s0, %s1 : {0}
  %t2 = stablehlo.add %t1, %s2 : {0}
  %t3 = stablehlo.add %t2, %s3 : {0}
  %t4 = stablehlo.add %t3, %s4 : {0}
  %c = stablehlo.concatenate %t4, %x, dim = 0 : ({0}, {0}) -> tensor<80000xf32>
  return %c : tensor<80000xf32>
}})",
                      type);
  const auto names = expect_same_bits(text);
  EXPECT_EQ(names.back(), "stablehlo.concatenate");
}

}  // namespace
}  // namespace meshd::test
