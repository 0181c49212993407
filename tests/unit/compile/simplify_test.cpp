// Constant folding and common subexpressions: which steps are left, and that results have the bits that they have
// without.
#include "service/compile/plan/simplify.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "service/partition/local_walk.h"
#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

/// Ops of the program and of the simplified one, nested ones included.
struct Counts {
  int64_t before = 0;
  int64_t after = 0;
};

/// Counts the ops of a name, after the results of both plans were compared.
Counts count_ops(const std::string& text, const std::string& name) {
  const partition::LocalProgram local = local_of(text);
  const std::optional<partition::LocalProgram> simpler = compile::simplify(local, {});
  const auto count = [&](const partition::LocalProgram& program) {
    int64_t found = 0;
    partition::walk(program.body, [&](const partition::LocalOp& op) { found += op.name == name ? 1 : 0; });
    return found;
  };
  const PlanRef with = plan_with(local, &compile::PlanSettings::simplify, true);
  const PlanRef without = plan_with(local, &compile::PlanSettings::simplify, false);
  Bench bench({.device_count = 8, .threads = 2});
  const Bits arguments = arguments_of(without, 3);
  EXPECT_EQ(difference(run(bench, with, arguments), run(bench, without, arguments)), "") << text << to_text(*with);
  return {count(local), simpler ? count(*simpler) : count(local)};
}

std::string main_of(const std::string& arguments, const std::string& results, const std::string& body) {
  return "module {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func @main(" + arguments + ") -> " + results + " {\n" +
         body + "  }\n}\n";
}

std::string sum_of(const std::string& result, const std::string& operand) {
  return "    %" + result + " = stablehlo.reduce(%" + operand +
         " init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x300xf32>, tensor<f32>) -> "
         "tensor<64xf32>\n";
}

const char* const kZero = "    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n";

TEST(Simplify, sum_that_is_made_twice_is_made_once) {
  const std::string text = main_of("%x: tensor<64x300xf32>", "tensor<64xf32>",
                                   kZero + sum_of("a", "x") + sum_of("b", "x") +
                                       "    %c = stablehlo.multiply %a, %b : tensor<64xf32>\n"
                                       "    return %c : tensor<64xf32>\n");
  const Counts sums = count_ops(text, "stablehlo.reduce");
  EXPECT_EQ(sums.before, 2);
  EXPECT_EQ(sums.after, 1);
}

// Each sum has its own exponential in its loop; as they are the same, one of both is left.
TEST(Simplify, sums_of_the_same_large_values_are_one) {
  const std::string text =
      main_of("%x: tensor<64x300xf32>", "tensor<64xf32>",
              std::string(kZero) + "    %e = stablehlo.exponential %x : tensor<64x300xf32>\n" + sum_of("a", "e") +
                  "    %f = stablehlo.exponential %x : tensor<64x300xf32>\n" + sum_of("b", "f") +
                  "    %c = stablehlo.multiply %a, %b : tensor<64xf32>\n"
                  "    return %c : tensor<64xf32>\n");
  EXPECT_EQ(count_ops(text, "stablehlo.reduce").after, 1);
  EXPECT_EQ(count_ops(text, "stablehlo.exponential").after, 1);
}

// Two loops read it: it would have to be stored.
TEST(Simplify, large_pointwise_results_stay_where_they_are_computed) {
  const std::string reduce_maximum =
      "    %b = stablehlo.reduce(%f init: %zero) applies stablehlo.maximum across dimensions = [1] : "
      "(tensor<64x300xf32>, tensor<f32>) -> tensor<64xf32>\n";
  const std::string text =
      main_of("%x: tensor<64x300xf32>", "tensor<64xf32>",
              std::string(kZero) + "    %e = stablehlo.negate %x : tensor<64x300xf32>\n" + sum_of("a", "e") +
                  "    %f = stablehlo.negate %x : tensor<64x300xf32>\n" + reduce_maximum +
                  "    %c = stablehlo.multiply %a, %b : tensor<64xf32>\n"
                  "    return %c : tensor<64xf32>\n");
  EXPECT_EQ(count_ops(text, "stablehlo.negate").after, 2);
}

TEST(Simplify, other_attributes_types_and_reducers_are_other_values) {
  const std::string text = main_of(
      "%x: tensor<8x8xf32>", "(tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xi32>, tensor<8xi8>)",
      std::string(kZero) +
          "    %a = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, "
          "tensor<f32>) -> tensor<8xf32>\n"
          "    %b = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, "
          "tensor<f32>) -> tensor<8xf32>\n"
          "    %c = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1] : "
          "(tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>\n"
          "    %i = stablehlo.convert %a : (tensor<8xf32>) -> tensor<8xi32>\n"
          "    %j = stablehlo.convert %a : (tensor<8xf32>) -> tensor<8xi8>\n"
          "    return %a, %b, %c, %i, %j : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xi32>, "
          "tensor<8xi8>\n");
  const Counts sums = count_ops(text, "stablehlo.reduce");
  EXPECT_EQ(sums.after, sums.before);
  EXPECT_EQ(count_ops(text, "stablehlo.convert").after, 2);
}

// jnp.var's degrees of freedom: the select is its first value.
TEST(Simplify, ops_of_constants_are_constants_and_a_select_by_one_is_its_operand) {
  const std::string text =
      main_of("%x: tensor<64x300xf32>", "tensor<64x300xf32>",
              std::string(kZero) +
                  "    %none = stablehlo.constant dense<0> : tensor<i32>\n"
                  "    %n = stablehlo.constant dense<3.0> : tensor<f32>\n"
                  "    %k = stablehlo.convert %none : (tensor<i32>) -> tensor<f32>\n"
                  "    %m = stablehlo.subtract %n, %k : tensor<f32>\n"
                  "    %some = stablehlo.compare GT, %m, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
                  "    %ms = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<64x300xf32>\n"
                  "    %nan = stablehlo.constant dense<0x7FC00000> : tensor<64x300xf32>\n"
                  "    %d = stablehlo.divide %x, %ms : tensor<64x300xf32>\n"
                  "    %y = stablehlo.select %some, %d, %nan : tensor<i1>, tensor<64x300xf32>\n"
                  "    return %y : tensor<64x300xf32>\n");
  for (const char* const name : {"stablehlo.convert", "stablehlo.subtract", "stablehlo.compare", "stablehlo.select"}) {
    EXPECT_EQ(count_ops(text, name).after, 0) << name;
  }
  EXPECT_EQ(count_ops(text, "stablehlo.divide").after, 1);
}

// Indices that are made valid as JAX does.
TEST(Simplify, small_arrays_are_folded_element_by_element) {
  const std::string text =
      main_of("%x: tensor<7xi32>", "tensor<3x1xi32>",
              "    %i = stablehlo.constant dense<[-1, 5, -7]> : tensor<3xi32>\n"
              "    %zero = stablehlo.constant dense<0> : tensor<3xi32>\n"
              "    %n = stablehlo.constant dense<7> : tensor<i32>\n"
              "    %ns = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<3xi32>\n"
              "    %less = stablehlo.compare LT, %i, %zero : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>\n"
              "    %more = stablehlo.add %i, %ns : tensor<3xi32>\n"
              "    %at = stablehlo.select %less, %more, %i : tensor<3xi1>, tensor<3xi32>\n"
              "    %rows = stablehlo.reshape %at : (tensor<3xi32>) -> tensor<3x1xi32>\n"
              "    return %rows : tensor<3x1xi32>\n");
  EXPECT_EQ(count_ops(text, "stablehlo.select").after, 0);
  EXPECT_EQ(count_ops(text, "stablehlo.reshape").after, 0);
}

// A reshape has the bytes it is given, so it may have more elements than the op's own kernel is asked for.
TEST(Simplify, elements_of_constants_are_picked) {
  std::string numbers = "0";
  for (int i = 1; i < 600; ++i) numbers += fmt::format(", {}", i % 100);
  const std::string text = main_of("%x: tensor<2xi32>", "(tensor<2xi32>, tensor<20x30xi8>)",
                                   "    %i = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xi32>\n"
                                   "    %two = stablehlo.slice %i [1:4:2] : (tensor<4xi32>) -> tensor<2xi32>\n"
                                   "    %back = stablehlo.reverse %two, dims = [0] : tensor<2xi32>\n"
                                   "    %many = stablehlo.constant dense<[" +
                                       numbers +
                                       "]> : tensor<600xi8>\n"
                                       "    %rows = stablehlo.reshape %many : (tensor<600xi8>) -> tensor<20x30xi8>\n"
                                       "    return %back, %rows : tensor<2xi32>, tensor<20x30xi8>\n");
  for (const char* const name : {"stablehlo.slice", "stablehlo.reverse", "stablehlo.reshape"})
    EXPECT_EQ(count_ops(text, name).after, 0) << name;
}

// In a loop alone: elsewhere a fused loop counts as it goes.
TEST(Simplify, short_iotas_in_loops_are_constants) {
  const auto text = [](int elements) {
    return fmt::format(R"(func.func @main(%x: tensor<{0}xi32>) -> tensor<{0}xi32> {{
  %none = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%i = %none, %v = %x) : tensor<i32>, tensor<{0}xi32> cond {{
    %most = stablehlo.constant dense<50> : tensor<i32>
    %p = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %k = stablehlo.iota dim = 0 : tensor<{0}xi32>
    %n = stablehlo.subtract %k, %v : tensor<{0}xi32>
    stablehlo.return %j, %n : tensor<i32>, tensor<{0}xi32>
  }}
  return %w#1 : tensor<{0}xi32>
}}
)",
                       elements);
  };
  EXPECT_EQ(count_ops(text(64), "stablehlo.iota").after, 0);
  EXPECT_EQ(count_ops(text(65), "stablehlo.iota").after, 1);
  const std::string outside = main_of("%x: tensor<8xi32>", "tensor<8xi32>",
                                      "    %k = stablehlo.iota dim = 0 : tensor<8xi32>\n"
                                      "    %n = stablehlo.subtract %k, %x : tensor<8xi32>\n"
                                      "    return %n : tensor<8xi32>\n");
  EXPECT_EQ(count_ops(outside, "stablehlo.iota").after, 1);
}

TEST(Simplify, what_jax_checkpoint_computes_again_is_computed_again) {
  const std::string text =
      main_of("%x: tensor<64x300xf32>", "tensor<64xf32>",
              kZero + sum_of("a", "x") + "    %y = stablehlo.optimization_barrier %x : tensor<64x300xf32>\n" +
                  sum_of("b", "y") +
                  "    %c = stablehlo.multiply %a, %b : tensor<64xf32>\n"
                  "    return %c : tensor<64xf32>\n");
  EXPECT_EQ(count_ops(text, "stablehlo.reduce").after, 2);
}

// What a body computes of values around it may be there already; what it computes itself is not known outside.
TEST(Simplify, blocks_know_what_is_around_them) {
  const std::string text =
      main_of("%x: tensor<64x300xf32>, %n: tensor<i32>", "(tensor<64xf32>, tensor<64xf32>)",
              kZero + sum_of("a", "x") +
                  "    %none = stablehlo.constant dense<0> : tensor<i32>\n"
                  "    %w:2 = stablehlo.while(%i = %none, %v = %a) : tensor<i32>, tensor<64xf32>\n"
                  "     cond {\n"
                  "      %three = stablehlo.constant dense<3> : tensor<i32>\n"
                  "      %p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                  "      stablehlo.return %p : tensor<i1>\n"
                  "    } do {\n" +
                  sum_of("s", "x") +
                  "      %t = stablehlo.cosine %s : tensor<64xf32>\n"
                  "      %u = stablehlo.add %v, %t : tensor<64xf32>\n"
                  "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
                  "      %next = stablehlo.add %i, %one : tensor<i32>\n"
                  "      stablehlo.return %next, %u : tensor<i32>, tensor<64xf32>\n"
                  "    }\n"
                  "    %z = stablehlo.cosine %a : tensor<64xf32>\n"
                  "    return %w#1, %z : tensor<64xf32>, tensor<64xf32>\n");
  EXPECT_EQ(count_ops(text, "stablehlo.reduce").after, 1);
  EXPECT_EQ(count_ops(text, "stablehlo.cosine").after, 2);
}

TEST(Simplify, sums_over_shards_are_made_once) {
  const std::string sharding = " {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>}";
  const std::string text = main_of("%x: tensor<64x300xf32>" + sharding, "tensor<64xf32>",
                                   kZero + sum_of("a", "x") + sum_of("b", "x") +
                                       "    %s = stablehlo.sine %a : tensor<64xf32>\n"
                                       "    %c = stablehlo.multiply %s, %b : tensor<64xf32>\n"
                                       "    return %c : tensor<64xf32>\n");
  const Counts sums = count_ops(text, "all_reduce");
  EXPECT_EQ(sums.before, 2);
  EXPECT_EQ(sums.after, 1);
}

// One value may be several results, an argument, or a constant.
TEST(Simplify, results_may_become_one_value) {
  const std::string text =
      main_of("%x: tensor<64xf32>", "(tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)",
              "    %yes = stablehlo.constant dense<true> : tensor<i1>\n"
              "    %two = stablehlo.constant dense<2.0> : tensor<64xf32>\n"
              "    %a = stablehlo.cosine %x : tensor<64xf32>\n"
              "    %b = stablehlo.cosine %x : tensor<64xf32>\n"
              "    %c = stablehlo.select %yes, %x, %a : tensor<i1>, tensor<64xf32>\n"
              "    %d = stablehlo.multiply %two, %two : tensor<64xf32>\n"
              "    return %a, %b, %c, %d : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>\n");
  EXPECT_EQ(count_ops(text, "stablehlo.cosine").after, 1);
  EXPECT_EQ(count_ops(text, "stablehlo.multiply").after, 0);
}

TEST(Simplify, program_without_either_stays) {
  const std::string text = main_of("%x: tensor<64xf32>", "tensor<64xf32>",
                                   "    %y = stablehlo.cosine %x : tensor<64xf32>\n    return %y : tensor<64xf32>\n");
  EXPECT_FALSE(compile::simplify(local_of(text), {}));
}

}  // namespace
}  // namespace meshd::test
