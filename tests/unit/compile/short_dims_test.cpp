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

// jnp.isin: each element beside each of a table.
TEST(ShortDims, any_over_a_short_dim_is_pointwise) {
  for (const int64_t count : {2, 10, 20}) {
    const std::string k = std::to_string(count);
    const PlanRef plan = expect_same_bits(
        "func.func @main(%x: tensor<3000xf32>, %t: tensor<" + k +
        "xf32>) -> tensor<3000xi1> {\n"
        "  %no = stablehlo.constant dense<false> : tensor<i1>\n"
        "  %a = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<3000xf32>) -> tensor<3000x" +
        k +
        "xf32>\n"
        "  %b = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<" +
        k + "xf32>) -> tensor<3000x" + k +
        "xf32>\n"
        "  %e = stablehlo.compare EQ, %a, %b : (tensor<3000x" +
        k + "xf32>, tensor<3000x" + k + "xf32>) -> tensor<3000x" + k +
        "xi1>\n"
        "  %r = stablehlo.reduce(%e init: %no) applies stablehlo.or across dimensions = [1] : (tensor<3000x" +
        k +
        "xi1>, tensor<i1>) -> tensor<3000xi1>\n"
        "  return %r : tensor<3000xi1>\n}\n");
    EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  }
}

/// jnp.select: the first of some conditions that holds, by an argmax over dim 0 or 1 of what they are concatenated to.
std::string first_of_conditions(int64_t dim, const std::string& sharding) {
  const std::string one = dim == 0 ? "tensor<1x90x70xi1>" : "tensor<90x1x70xi1>";
  const std::string all = dim == 0 ? "tensor<4x90x70x" : "tensor<90x4x70x";
  const std::string kept = dim == 0 ? "[1, 2]" : "[0, 2]";
  std::string text = "module {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func @main(%x: tensor<90x70xf32>" + sharding +
                     ") -> (tensor<90x70xi32>, tensor<90x70xi1>) {\n"
                     "    %false = stablehlo.constant dense<false> : " +
                     one +
                     "\n"
                     "    %no = stablehlo.constant dense<false> : tensor<i1>\n"
                     "    %zero = stablehlo.constant dense<0> : tensor<i32>\n";
  for (int k = 0; k < 3; ++k) {
    const std::string n = std::to_string(k);
    text += "    %l" + n + " = stablehlo.constant dense<" + std::to_string(4 * k - 4) +
            ".0> : tensor<90x70xf32>\n    %p" + n + " = stablehlo.compare LT, %x, %l" + n +
            " : (tensor<90x70xf32>, tensor<90x70xf32>) -> tensor<90x70xi1>\n    %c" + n +
            " = stablehlo.broadcast_in_dim %p" + n + ", dims = " + kept + " : (tensor<90x70xi1>) -> " + one + "\n";
  }
  const std::string d = std::to_string(dim);
  return text + "    %all = stablehlo.concatenate %false, %c0, %c1, %c2, dim = " + d + " : (" + one + ", " + one +
         ", " + one + ", " + one + ") -> " + all + "i1>\n    %i = stablehlo.iota dim = " + d + " : " + all + R"(i32>
    %r:2 = stablehlo.reduce(%all init: %no), (%i init: %zero) across dimensions = [)" +
         d + "] : (" + all + "i1>, " + all + R"(i32>, tensor<i1>, tensor<i32>) -> (tensor<90x70xi1>, tensor<90x70xi32>)
     reducer(%a: tensor<i1>, %b: tensor<i1>) (%k: tensor<i32>, %l: tensor<i32>)  {
      %gt = stablehlo.compare GT, %a, %b, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %eq = stablehlo.compare EQ, %a, %b, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %lt = stablehlo.compare LT, %k, %l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %tie = stablehlo.and %eq, %lt : tensor<i1>
      %or = stablehlo.or %gt, %tie : tensor<i1>
      %v = stablehlo.select %gt, %a, %b : tensor<i1>, tensor<i1>
      %n = stablehlo.select %or, %k, %l : tensor<i1>, tensor<i32>
      stablehlo.return %v, %n : tensor<i1>, tensor<i32>
    }
    return %r#1, %r#0 : tensor<90x70xi32>, tensor<90x70xi1>
  }
}
)";
}

TEST(ShortDims, the_first_condition_that_holds_is_pointwise) {
  for (const int64_t dim : {0, 1}) {
    const PlanRef plan = expect_same_bits(first_of_conditions(dim, ""));
    EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
    expect_same_bits(first_of_conditions(dim, " {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>}"));
    expect_same_bits(first_of_conditions(dim, " {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>}"));
  }
}

// Products and sums of floats are accumulated in double, but for sums of few f32.
TEST(ShortDims, reductions_over_the_first_dim_of_what_rounds_nothing_are_pointwise) {
  const auto reduced = [](const std::string& op, int64_t terms, const std::string& dtype) {
    const std::string n = std::to_string(terms);
    return "func.func @main(%x: tensor<" + n + "x1xf32>, %y: tensor<2000xf32>, %s: tensor<f32>) -> tensor<2000x" +
           dtype +
           "> {\n"
           "  %a = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<" +
           n + "x1xf32>) -> tensor<" + n +
           "x2000xf32>\n"
           "  %b = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<2000xf32>) -> tensor<" +
           n +
           "x2000xf32>\n"
           "  %f = stablehlo.multiply %a, %b : tensor<" +
           n +
           "x2000xf32>\n"
           "  %d = stablehlo.convert %f : (tensor<" +
           n + "x2000xf32>) -> tensor<" + n + "x2000x" + dtype +
           ">\n"
           "  %i = stablehlo.convert %s : (tensor<f32>) -> tensor<" +
           dtype +
           ">\n"
           "  %r = stablehlo.reduce(%d init: %i) applies stablehlo." +
           op + " across dimensions = [0] : (tensor<" + n + "x2000x" + dtype + ">, tensor<" + dtype +
           ">) -> tensor<2000x" + dtype + ">\n  return %r : tensor<2000x" + dtype + ">\n}\n";
  };
  for (const auto* const op : {"maximum", "minimum", "add", "multiply"}) {
    for (const std::string dtype : {"f32", "bf16", "i32", "i8", "ui32"}) {
      const bool rounds = std::string(op) == "multiply" && dtype == "f32";
      const bool has_code = dtype != "bf16" && dtype != "i8";
      if (rounds || !has_code)
        expect_unchanged(reduced(op, 3, dtype));
      else
        expect_same_bits(reduced(op, 3, dtype));
    }
  }
}

/// Two reductions at once, by a region that returns these of its values.
std::string two_results(const std::string& returned) {
  return R"(func.func @main(%x: tensor<3000xf32>, %t: tensor<3xf32>, %p0: tensor<f32>, %q0: tensor<f32>) -> (tensor<3000xf32>, tensor<3000xf32>) {
  %a = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<3000xf32>) -> tensor<3000x3xf32>
  %b = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<3xf32>) -> tensor<3000x3xf32>
  %e = stablehlo.multiply %a, %b : tensor<3000x3xf32>
  %f = stablehlo.subtract %a, %b : tensor<3000x3xf32>
  %r:2 = stablehlo.reduce(%e init: %p0), (%f init: %q0) across dimensions = [1] : (tensor<3000x3xf32>, tensor<3000x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3000xf32>, tensor<3000xf32>)
   reducer(%p: tensor<f32>, %q: tensor<f32>) (%k: tensor<f32>, %l: tensor<f32>)  {
    %m = stablehlo.maximum %p, %q : tensor<f32>
    %n = stablehlo.minimum %k, %l : tensor<f32>
    stablehlo.return )" +
         returned + R"( : tensor<f32>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<3000xf32>, tensor<3000xf32>
}
)";
}

TEST(ShortDims, regions_return_their_values_in_any_order) {
  // Those that do not depend on how terms are put together.
  for (const auto* const returned : {"%m, %n", "%m, %m", "%n, %n", "%q, %l"}) expect_same_bits(two_results(returned));
}

// Nothing is computed twice for the sake of a loop without a dim.
TEST(ShortDims, what_others_read_or_what_a_loop_does_not_take_stays) {
  const auto maximum_of = [](int64_t terms, const std::string& result, const std::string& returned) {
    const std::string n = std::to_string(terms);
    return "func.func @main(%x: tensor<3000xf32>, %t: tensor<" + n + "xf32>, %s: tensor<f32>) -> " + result + " {\n" +
           "  %a = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<3000xf32>) -> tensor<3000x" + n + "xf32>\n" +
           "  %b = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<" + n + "xf32>) -> tensor<3000x" + n +
           "xf32>\n" + "  %f = stablehlo.multiply %a, %b : tensor<3000x" + n + "xf32>\n" +
           "  %r = stablehlo.reduce(%f init: %s) applies stablehlo.maximum across dimensions = [1] : (tensor<3000x" +
           n + "xf32>, tensor<f32>) -> tensor<3000xf32>\n  return " + returned + " : " + result + "\n}\n";
  };
  expect_same_bits(maximum_of(8, "tensor<3000xf32>", "%r"));
  expect_unchanged(maximum_of(30, "tensor<3000xf32>", "%r"));
  std::string both = maximum_of(8, "(tensor<3000xf32>, tensor<3000x8xf32>)", "%r, %f");
  both.replace(both.rfind("(tensor<3000xf32>, tensor<3000x8xf32>)"), 38, "tensor<3000xf32>, tensor<3000x8xf32>");
  expect_unchanged(both);
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
