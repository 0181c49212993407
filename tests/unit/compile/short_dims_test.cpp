// Sums over arrays of short rows, split by element of the row and not: on whole numbers, whose sums are exact, the same
// bits; and none of the large array is left in memory.
#include "service/compile/plan/short_dims.h"

#include <gtest/gtest.h>

#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

/// Whole numbers from -8 to 8.
Bits whole_numbers(const PlanRef& plan) {
  std::mt19937 random(5);
  Bits out;
  for (const compile::PlanParameter& argument : plan->arguments) {
    out.emplace_back();
    for (int64_t shard = 0; shard < argument.shard_count(); ++shard) {
      std::vector<float> values(static_cast<size_t>(argument.shard_bytes) / sizeof(float));
      for (float& value : values) value = static_cast<float>(random() % 17) - 8;
      const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
      out.back().emplace_back(bytes, bytes + argument.shard_bytes);
    }
  }
  return out;
}

/// Runs both plans; gives the one that splits.
PlanRef expect_same_bits(const std::string& text) {
  const partition::LocalProgram local = local_of(text);
  EXPECT_TRUE(compile::split_short_dims(local, {})) << text;
  const PlanRef split = plan_with(local, &compile::PlanSettings::split_short_dims, true);
  const PlanRef plain = plan_with(local, &compile::PlanSettings::split_short_dims, false);
  Bench bench({.device_count = 8, .threads = 2});
  const Bits arguments = whole_numbers(plain);
  EXPECT_EQ(difference(run(bench, split, arguments), run(bench, plain, arguments)), "") << text << to_text(*split);
  return split;
}

void expect_unchanged(const std::string& text) { EXPECT_FALSE(compile::split_short_dims(local_of(text), {})) << text; }

/// Differences of all pairs of `count` points, then `body`, which returns %r of `result`.
std::string pairs(int64_t count, const std::string& body, const std::string& result, const std::string& sharding = "",
                  int64_t places = 3) {
  const std::string n = std::to_string(count);
  const std::string k = std::to_string(places);
  const std::string points = "tensor<" + n + "x" + k + "xf32>";
  const std::string all = "tensor<" + n + "x" + n + "x" + k + "xf32>";
  return "module {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func @main(%p: " + points + sharding + ") -> " + result +
         " {\n    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
         "    %b = stablehlo.broadcast_in_dim %p, dims = [1, 2] : (" +
         points + ") -> tensor<1x" + n + "x" + k + "xf32>\n    %c = stablehlo.broadcast_in_dim %p, dims = [0, 2] : (" +
         points + ") -> tensor<" + n + "x1x" + k +
         "xf32>\n    %bb = stablehlo.broadcast_in_dim %b, dims = [0, 1, 2] : (tensor<1x" + n + "x" + k + "xf32>) -> " +
         all + "\n    %cc = stablehlo.broadcast_in_dim %c, dims = [0, 1, 2] : (tensor<" + n + "x1x" + k + "xf32>) -> " +
         all + "\n    %d = stablehlo.subtract %bb, %cc : " + all + "\n" + body + "    return %r : " + result +
         "\n  }\n}\n";
}

std::string squares(int64_t count, int64_t places = 3) {
  const std::string n = std::to_string(count);
  const std::string all = "tensor<" + n + "x" + n + "x" + std::to_string(places) + "xf32>";
  return "    %s = stablehlo.multiply %d, %d : " + all +
         "\n    %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [2] : (" + all +
         ", tensor<f32>) -> tensor<" + n + "x" + n + "xf32>\n";
}

std::string square_type(int64_t count) {
  return "tensor<" + std::to_string(count) + "x" + std::to_string(count) + "xf32>";
}

TEST(ShortDims, sum_over_the_last_dim_is_pointwise) {
  for (const int64_t places : {2, 3, 4}) {
    const PlanRef plan = expect_same_bits(pairs(70, squares(70, places), square_type(70), "", places));
    EXPECT_LT(plan->memory.arena, 70 * 70 * 4) << "the differences are nowhere in memory";
  }
}

TEST(ShortDims, longer_rows_and_small_arrays_stay) {
  expect_unchanged(pairs(70, squares(70, 5), square_type(70), "", 5));
  expect_unchanged(pairs(20, squares(20), square_type(20)));
}

TEST(ShortDims, sum_that_keeps_the_last_dim_is_a_sum_for_each_index) {
  const std::string body =
      "    %r = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<70x70x3xf32>, "
      "tensor<f32>) -> tensor<70x3xf32>\n";
  expect_same_bits(pairs(70, body, "tensor<70x3xf32>"));
}

// Both in one loop over rows: what the second one divides by is never in memory as a whole.
const char* const kForces =
    "    %s = stablehlo.multiply %d, %d : tensor<70x70x3xf32>\n"
    "    %q = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<70x70x3xf32>, "
    "tensor<f32>) -> tensor<70x70xf32>\n"
    "    %w = stablehlo.broadcast_in_dim %q, dims = [0, 1] : (tensor<70x70xf32>) -> tensor<70x70x1xf32>\n"
    "    %one = stablehlo.constant dense<1.0> : tensor<70x70x1xf32>\n"
    "    %x = stablehlo.maximum %w, %one : tensor<70x70x1xf32>\n"
    "    %y = stablehlo.broadcast_in_dim %x, dims = [0, 1, 2] : (tensor<70x70x1xf32>) -> tensor<70x70x3xf32>\n"
    "    %z = stablehlo.multiply %d, %y : tensor<70x70x3xf32>\n"
    "    %r = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<70x70x3xf32>, "
    "tensor<f32>) -> tensor<70x3xf32>\n";

TEST(ShortDims, forces_of_bodies_pass_over_pairs_once) {
  const PlanRef plan = expect_same_bits(pairs(70, kForces, "tensor<70x3xf32>"));
  EXPECT_LT(plan->memory.arena, 70 * 70 * 4);
}

/// A text about 70 bodies, about 90.
std::string of_90_bodies(std::string text) {
  for (size_t at = text.find("70"); at != std::string::npos; at = text.find("70", at)) text.replace(at, 2, "90");
  return text;
}

// Four shards of 23 rows, of which the last has padding: of the rows that are kept, and of those that are added.
TEST(ShortDims, rows_of_shards_that_are_no_multiple_of_the_mesh) {
  const std::string by_rows = " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}";
  const std::string text = of_90_bodies(pairs(70, kForces, "tensor<70x3xf32>", by_rows));
  std::string kept = text;
  kept.replace(kept.find("-> tensor<90x3xf32> {"), 21, "-> (tensor<90x3xf32>" + by_rows + ") {");
  expect_same_bits(kept);
  expect_same_bits(
      of_90_bodies(pairs(70,
                         "    %s = sdy.sharding_constraint %d <@mesh, [{}, {\"x\"}, {}]> : tensor<70x70x3xf32>\n"
                         "    %t = stablehlo.abs %s : tensor<70x70x3xf32>\n"
                         "    %r = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [1] : "
                         "(tensor<70x70x3xf32>, tensor<f32>) -> tensor<70x3xf32>\n",
                         "tensor<70x3xf32>")));
}

TEST(ShortDims, sharded_last_dim_stays) {
  const std::string sharding = " {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>}";
  const partition::LocalProgram local = local_of(pairs(70, squares(70, 4), square_type(70), sharding, 4));
  EXPECT_FALSE(compile::split_short_dims(local, {}));
}

TEST(ShortDims, scalars_conversions_and_constants_of_the_tree) {
  const std::string body =
      "    %low = stablehlo.constant dense<-3.0> : tensor<f32>\n"
      "    %high = stablehlo.constant dense<4.0> : tensor<f32>\n"
      "    %e = stablehlo.clamp %low, %d, %high : (tensor<f32>, tensor<70x70x3xf32>, tensor<f32>) -> "
      "tensor<70x70x3xf32>\n"
      "    %i = stablehlo.convert %e : (tensor<70x70x3xf32>) -> tensor<70x70x3xi32>\n"
      "    %two = stablehlo.constant dense<2> : tensor<70x70x3xi32>\n"
      "    %is = stablehlo.compare LT, %i, %two : (tensor<70x70x3xi32>, tensor<70x70x3xi32>) -> tensor<70x70x3xi1>\n"
      "    %rows = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>\n"
      "    %each = stablehlo.broadcast_in_dim %rows, dims = [2] : (tensor<3xf32>) -> tensor<70x70x3xf32>\n"
      "    %f = stablehlo.select %is, %each, %e : tensor<70x70x3xi1>, tensor<70x70x3xf32>\n"
      "    %r = stablehlo.reduce(%f init: %low) applies stablehlo.add across dimensions = [2] : "
      "(tensor<70x70x3xf32>, tensor<f32>) -> tensor<70x70xf32>\n";
  expect_same_bits(pairs(70, body, square_type(70)));
}

TEST(ShortDims, values_that_others_read_too) {
  const std::string body = squares(70) + "    %t = stablehlo.tanh %r : tensor<70x70xf32>\n";
  std::string text = pairs(70, body, square_type(70));
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  replace(") -> tensor<70x70xf32> {\n", ") -> (tensor<70x70xf32>, tensor<70x70x3xf32>) {\n");
  replace("return %r : tensor<70x70xf32>", "return %r, %s : tensor<70x70xf32>, tensor<70x70x3xf32>");
  expect_same_bits(text);
}

TEST(ShortDims, arrays_that_are_large_themselves_stay) {
  expect_unchanged(
      "module {\n  func.func @main(%p: tensor<70x70x3xf32>) -> tensor<70x70xf32> {\n"
      "    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "    %s = stablehlo.multiply %p, %p : tensor<70x70x3xf32>\n"
      "    %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [2] : "
      "(tensor<70x70x3xf32>, tensor<f32>) -> tensor<70x70xf32>\n    return %r : tensor<70x70xf32>\n  }\n}\n");
}

// Whatever it adds: one pointwise op with the initial value, and no step that reduces.
TEST(ShortDims, reduction_over_dims_of_one_element_is_pointwise) {
  const auto reduced = [](const std::string& op, const std::string& init, const std::string& dims,
                          const std::string& from, const std::string& to, const std::string& sharding = "") {
    const std::string in = "tensor<" + from + "xf32>", out = "tensor<" + to + "f32>";
    return "module {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func @main(%p: " + in + sharding + ") -> " + out +
           " {\n    %init = stablehlo.constant dense<" + init +
           "> : tensor<f32>\n    %r = stablehlo.reduce(%p init: " + "%init) applies stablehlo." + op +
           " across dimensions = [" + dims + "] : (" + in + ", tensor<f32>) -> " + out + "\n    return %r : " + out +
           "\n  }\n}\n";
  };
  const std::string by_rows = " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}";
  for (const std::string& text :
       {reduced("maximum", "-2.0", "1", "50x1", "50x"), reduced("add", "3.0", "0, 2", "1x9x1", "9x"),
        reduced("multiply", "0.5", "0", "1", ""), reduced("add", "1.0", "1", "50x1", "50x", by_rows)}) {
    const PlanRef plan = expect_same_bits(text);
    EXPECT_EQ(to_text(*plan).find("reduce"), std::string::npos) << to_text(*plan);
  }
  // In any order, and with what they alone read written anew.
  for (const std::string dims : {"0, 1", "1, 0"}) {
    std::string text = reduced("add", "1.0", dims, "1x1x50", "50x");
    expect_same_bits(text);
    text.replace(text.find("    %r"), 0, "    %n = stablehlo.negate %p : tensor<1x1x50xf32>\n");
    text.replace(text.find("reduce(%p"), 9, "reduce(%n");
    expect_same_bits(text);
  }
  expect_same_bits(reduced("maximum", "1.0", "2, 0", "1x50x1", "50x"));
  expect_same_bits(reduced("add", "1.0", "3, 0, 2", "1x50x1x1", "50x"));
  expect_same_bits(reduced("add", "1.0", "0", "1x50", "50x", by_rows));  // three of four shards have none of it
  expect_unchanged(reduced("add", "1.0", "0, 1", "1x50", ""));
}

// What is small and computed is copied where it is: the text is not written again from its beginning.
TEST(ShortDims, positions_that_were_computed_before_are_leaves) {
  std::string text = pairs(70, kForces, "tensor<70x3xf32>");
  std::string moves;
  for (int i = 0; i < 40; ++i) {
    moves += "    %m" + std::to_string(i) + " = stablehlo.maximum " + (i == 0 ? "%p" : "%m" + std::to_string(i - 1)) +
             ", %p : tensor<70x3xf32>\n";
  }
  const size_t begin = text.find("    %b = ");
  for (size_t at = text.find("%p, dims", begin); at != std::string::npos; at = text.find("%p, dims", at + 2))
    text.replace(at, 2, "%m39");
  text.insert(begin, moves);
  expect_same_bits(text);
}

TEST(ShortDims, long_chains_of_large_arrays_stay_and_end) {
  std::string chain;
  for (int i = 0; i < 20'000; ++i) {
    chain += "    %k" + std::to_string(i) + " = stablehlo.abs " + (i == 0 ? "%d" : "%k" + std::to_string(i - 1)) +
             " : tensor<70x70x3xf32>\n";
  }
  expect_unchanged(pairs(70,
                         chain +
                             "    %r = stablehlo.reduce(%k19999 init: %zero) applies stablehlo.add across dimensions = "
                             "[2] : (tensor<70x70x3xf32>, tensor<f32>) -> tensor<70x70xf32>\n",
                         square_type(70)));
}

TEST(ShortDims, in_the_body_of_a_loop) {
  std::string text = pairs(70, kForces, "tensor<70x3xf32>");
  const size_t begin = text.find("    %b = ");
  const size_t end = text.find("    return %r");
  std::string body = text.substr(begin, end - begin);
  for (size_t at = body.find("%p"); at != std::string::npos; at = body.find("%p", at + 2)) body.replace(at, 2, "%v");
  text.replace(begin, end - begin,
               "    %n = stablehlo.constant dense<0> : tensor<i32>\n"
               "    %w0:2 = stablehlo.while(%i = %n, %v = %p) : tensor<i32>, tensor<70x3xf32>\n    cond {\n"
               "      %three = stablehlo.constant dense<3> : tensor<i32>\n"
               "      %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
               "      stablehlo.return %go : tensor<i1>\n    } do {\n" +
                   body +
                   "      %step = stablehlo.constant dense<1> : tensor<i32>\n"
                   "      %next = stablehlo.add %i, %step : tensor<i32>\n"
                   "      %sign = stablehlo.sign %r : tensor<70x3xf32>\n"
                   "      stablehlo.return %next, %sign : tensor<i32>, tensor<70x3xf32>\n    }\n");
  text.replace(text.find("return %r :"), 11, "return %w0#1 :");
  expect_same_bits(text);
}

}  // namespace
}  // namespace meshd::test
