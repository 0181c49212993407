// Gathers of computed values in front of what computes them, and behind it: the same bits, and what is gathered from is
// nowhere in memory.
#include "service/compile/plan/bubble_up_gathers.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using compile::PlanRef;

/// Runs a program with simplification, of which the pass is a part, and without; gives the plan with it.
PlanRef expect_same_results(const std::string& text) {
  const partition::LocalProgram local = local_of(text);
  const PlanRef with = plan_with(local, &compile::PlanSettings::simplify, true);
  const PlanRef without = plan_with(local, &compile::PlanSettings::simplify, false);
  Bench bench({.device_count = 8, .threads = 2});
  const Bits arguments = arguments_of(without, 3);
  EXPECT_EQ(difference(run(bench, with, arguments), run(bench, without, arguments)), "") << text << to_text(*with);
  return with;
}

/// The same where the pass has something to do.
PlanRef expect_same_bits(const std::string& text) {
  EXPECT_TRUE(compile::bubble_up_gathers(local_of(text), {})) << text;
  return expect_same_results(text);
}

void expect_unchanged(const std::string& text) { EXPECT_FALSE(compile::bubble_up_gathers(local_of(text), {})) << text; }

size_t gathers_in(const PlanRef& plan) {
  size_t count = 0;
  for (const compile::Block& block : plan->blocks) {
    for (const compile::Step& step : block.steps) count += step.name == "stablehlo.gather" ? 1 : 0;
  }
  return count;
}

constexpr std::string_view kRows = "tensor<96x1000xf32>";
constexpr std::string_view kColumn = "tensor<96xf32>";

/// `make` computes %p, 96x1000, of %x and of %m, %b (a number for a row and a column); then elements are gathered.
std::string gathered(const std::string& make, const std::string& gather, const std::string& indices,
                     const std::string& result, const std::string& also = "", const std::string& also_type = "") {
  const std::string second = also.empty() ? "" : ", " + also_type;
  return fmt::format(R"(module {{
  sdy.mesh @mesh = <["d"=4]>
  func.func @main(%x: {0}, %m: {1}, %b: tensor<1000xf32>, %i: {2}) -> ({3}{4}) {{
{5}
    %r = "stablehlo.gather"(%p, %i) <{{{6}}}> : ({0}, {2}) -> {3}
    return %r{7} : {3}{4}
  }}
}}
)",
                     kRows, kColumn, indices, result, second, make, gather, also.empty() ? "" : ", " + also);
}

const std::string kMake =
    R"(    %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<96xf32>) -> tensor<96x1000xf32>
    %s = stablehlo.subtract %x, %mb : tensor<96x1000xf32>
    %e = stablehlo.exponential %s : tensor<96x1000xf32>
    %c = stablehlo.constant dense<0.5> : tensor<96x1000xf32>
    %p = stablehlo.multiply %e, %c : tensor<96x1000xf32>)";
const std::string kWithBias = kMake.substr(0, kMake.rfind('\n')) + R"(
    %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1000xf32>) -> tensor<96x1000xf32>
    %q = stablehlo.add %e, %bb : tensor<96x1000xf32>
    %p = stablehlo.multiply %q, %c : tensor<96x1000xf32>)";
const std::string kBatched =
    "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], "
    "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, "
    "slice_sizes = array<i64: 1, 1>";
const std::string kPairs =
    "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], "
    "index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>";
const std::string kSwappedPairs =
    "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [1, 0], "
    "index_vector_dim = 0>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>";
const std::string kWholeRows =
    "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
    "index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1000>";
const std::string kPartsOfColumns =
    "dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], start_index_map = [1], index_vector_dim = 1>, "
    "indices_are_sorted = false, slice_sizes = array<i64: 96, 5>";

TEST(BubbleUpGathers, one_element_of_each_row) {
  const PlanRef plan = expect_same_bits(gathered(kMake, kBatched, "tensor<96x1x1xi32>", "tensor<96x1xf32>"));
  EXPECT_LT(plan->memory.arena, 96 * 1000 * 4) << "what is gathered from is nowhere in memory";
  EXPECT_EQ(gathers_in(plan), 1U) << "of the argument; a row's number is the result's as it is\n" << to_text(*plan);
}

TEST(BubbleUpGathers, a_number_for_each_column_is_gathered_by_itself) {
  const PlanRef plan = expect_same_bits(gathered(kWithBias, kBatched, "tensor<96x2x1xi32>", "tensor<96x2xf32>"));
  EXPECT_EQ(gathers_in(plan), 2U) << to_text(*plan);
}

TEST(BubbleUpGathers, pairs_of_indices_are_read_in_parts) {
  for (const std::string& make : {kMake, kWithBias}) {
    const PlanRef plan = expect_same_bits(gathered(make, kPairs, "tensor<50x2xi32>", "tensor<50xf32>"));
    EXPECT_EQ(gathers_in(plan), make == kMake ? 2U : 3U) << to_text(*plan);
    expect_same_bits(gathered(make, kSwappedPairs, "tensor<2x50xi64>", "tensor<50xf32>"));
  }
}

TEST(BubbleUpGathers, windows) {
  for (const std::string& make : {kMake, kWithBias}) {
    expect_same_bits(gathered(make, kWholeRows, "tensor<3x1xi32>", "tensor<3x1000xf32>"));
    expect_same_bits(gathered(make, kPartsOfColumns, "tensor<4x1xi32>", "tensor<96x4x5xf32>"));
  }
}

TEST(BubbleUpGathers, what_is_stored_anyway_is_gathered_from) {
  expect_unchanged(gathered(kMake, kBatched, "tensor<96x1x1xi32>", "tensor<96x1xf32>", "%p", std::string(kRows)));
}

// Slices are read by the loop that adds them; two of them would be stored to be gathered from.
TEST(BubbleUpGathers, at_most_one_value_is_stored_for_gathers) {
  const auto slices = [](const std::string& second) {
    return R"(    %h = stablehlo.concatenate %x, %x, dim = 0 : (tensor<96x1000xf32>, tensor<96x1000xf32>) -> tensor<192x1000xf32>
    %s = stablehlo.slice %h [50:146, 0:1000] : (tensor<192x1000xf32>) -> tensor<96x1000xf32>
    %t = stablehlo.slice %h [90:186, 0:1000] : (tensor<192x1000xf32>) -> tensor<96x1000xf32>
    %p = stablehlo.add %s, )" +
           second + " : tensor<96x1000xf32>";
  };
  expect_unchanged(gathered(slices("%t"), kBatched, "tensor<96x1x1xi32>", "tensor<96x1xf32>"));
  expect_same_bits(gathered(slices("%x"), kBatched, "tensor<96x1x1xi32>", "tensor<96x1xf32>"));
}

// Each level would look at the one before twice.
TEST(BubbleUpGathers, deep_chains_that_end_in_an_iota_are_looked_at_once) {
  std::string make =
      "    %n = stablehlo.iota dim = 1 : tensor<96x1000xf32>\n    %a0 = stablehlo.exponential %x : "
      "tensor<96x1000xf32>\n    %b0 = stablehlo.tanh %x : tensor<96x1000xf32>\n";
  constexpr int kLevels = 40;
  for (int i = 0; i < kLevels; ++i) {
    make += fmt::format(
        "    %a{1} = stablehlo.clamp %a{0}, %b{0}, %n : tensor<96x1000xf32>\n"
        "    %b{1} = stablehlo.clamp %b{0}, %a{0}, %n : tensor<96x1000xf32>\n",
        i, i + 1);
  }
  make += fmt::format("    %p = stablehlo.add %a{0}, %b{0} : tensor<96x1000xf32>", kLevels);
  expect_unchanged(gathered(make, kBatched, "tensor<96x1x1xi32>", "tensor<96x1xf32>"));
}

TEST(BubbleUpGathers, sharded_rows) {
  std::string text = gathered(kWithBias, kBatched, "tensor<96x1x1xi32>", "tensor<96x1xf32>");
  const std::string argument = "%x: tensor<96x1000xf32>";
  text.replace(text.find(argument), argument.size(),
               argument + R"( {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>})");
  expect_same_bits(text);
  text = gathered(kMake, kBatched, "tensor<96x1x1xi32>", "tensor<96x1xf32>");
  text.replace(text.find(argument), argument.size(),
               argument + R"( {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}]>})");
  expect_same_results(text);
}

TEST(BubbleUpGathers, gathers_of_many_elements_or_of_arguments_stay) {
  expect_unchanged(gathered(kMake, kBatched, "tensor<96x100x1xi32>", "tensor<96x100xf32>"));
  expect_unchanged(gathered("    %p = stablehlo.reshape %x : (tensor<96x1000xf32>) -> tensor<96x1000xf32>", kBatched,
                            "tensor<96x1x1xi32>", "tensor<96x1xf32>"));
  const std::string iota = R"(    %n = stablehlo.iota dim = 1 : tensor<96x1000xf32>
    %p = stablehlo.add %x, %n : tensor<96x1000xf32>)";
  expect_unchanged(gathered(iota, kBatched, "tensor<96x1x1xi32>", "tensor<96x1xf32>"));
}

}  // namespace
}  // namespace meshd::test
