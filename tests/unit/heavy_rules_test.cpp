// Rules that tests/conformance/propagation/ops prints for the same shapes.
#include "service/ops/heavy_rules.h"

#include <gtest/gtest.h>

namespace meshd::ops {
namespace {

ir::Type f32(tensor::Dims dims) { return ir::Type::of({tensor::DType::kFloat32, std::move(dims)}); }
ir::Attribute ints(std::vector<int64_t> values) { return {ir::IntArrayAttr{std::move(values), "i64"}}; }
ir::Attribute number(int64_t value) { return {ir::IntegerAttr{value, "i64"}}; }

std::string text(RuleFn rule, std::vector<ir::Type> operands, std::vector<ir::Type> results,
                 ir::AttributeList attributes, std::vector<ir::Region> regions = {}) {
  OpView view;
  view.operands = operands;
  view.results = results;
  view.attributes = &attributes;
  view.regions = regions;
  return sharding::to_sdy(rule(view));
}

TEST(HeavyRules, a_gather_of_rows_reduces_over_the_rows) {
  const ir::DictAttr numbers{
      "stablehlo.gather",
      {{"offset_dims", ints({1})}, {"collapsed_slice_dims", ints({0})}, {"index_vector_dim", number(1)}}};
  EXPECT_EQ(text(gather_rule, {f32({32, 16}), f32({8, 1})}, {f32({8, 16})}, {{"dimension_numbers", {numbers}}}),
            "([k, j], [i, l])->([i, j]) {i=8, j=16, k=32, l=1} reduction={k} need_replication={l}");
}

TEST(HeavyRules, a_gather_of_windows_is_blocked_along_them) {
  const ir::DictAttr numbers{"stablehlo.gather", {{"offset_dims", ints({1, 2})}, {"index_vector_dim", number(1)}}};
  EXPECT_EQ(text(gather_rule, {f32({32, 16}), f32({8, 1})}, {f32({8, 4, 16})}, {{"dimension_numbers", {numbers}}}),
            "([j, k], [i, l])->([i, j, k]) {i=8, j=32, k=16, l=1} need_replication={j, l} blocked_propagation={j}");
}

TEST(HeavyRules, a_scatter_into_windows_needs_both_whole) {
  const ir::DictAttr numbers{"stablehlo.scatter",
                             {{"update_window_dims", ints({1, 2})}, {"index_vector_dim", number(1)}}};
  EXPECT_EQ(
      text(scatter_rule, {f32({32, 16}), f32({8, 1}), f32({8, 4, 16})}, {f32({32, 16})},
           {{"scatter_dimension_numbers", {numbers}}}),
      "([j, l], [i, m], [i, k, l])->([j, l]) {i=8, j=32, k=4, l=16, m=1} reduction={i} need_replication={j, k, m}");
}

TEST(HeavyRules, a_scatter_that_only_replaces_has_no_partial_results) {
  const ir::DictAttr numbers{
      "stablehlo.scatter",
      {{"update_window_dims", ints({1})}, {"inserted_window_dims", ints({0})}, {"index_vector_dim", number(1)}}};
  const auto rule = [&](size_t op_count) {
    ir::Region body;
    body.ops.resize(op_count);
    return text(scatter_rule, {f32({32, 16}), f32({8, 1}), f32({8, 16})}, {f32({32, 16})},
                {{"scatter_dimension_numbers", {numbers}}}, {body});
  };
  EXPECT_NE(rule(2).find("reduction={i}"), std::string::npos);
  EXPECT_EQ(rule(1).find("reduction="), std::string::npos);
}

ir::Attribute convolution_numbers() {
  return {ir::DictAttr{"stablehlo.conv",
                       {{"input_batch_dimension", number(0)},
                        {"input_feature_dimension", number(2)},
                        {"input_spatial_dimensions", ints({1})},
                        {"kernel_input_feature_dimension", number(1)},
                        {"kernel_output_feature_dimension", number(2)},
                        {"kernel_spatial_dimensions", ints({0})},
                        {"output_batch_dimension", number(0)},
                        {"output_feature_dimension", number(2)},
                        {"output_spatial_dimensions", ints({1})}}}};
}

TEST(HeavyRules, a_convolution_of_groups) {
  EXPECT_EQ(text(convolution_rule, {f32({8, 16, 8}), f32({3, 1, 8})}, {f32({8, 16, 8})},
                 {{"dimension_numbers", convolution_numbers()}, {"feature_group_count", number(8)}}),
            "([i, j, k], [m, l, k])->([i, j, k]) {i=8, j=16, k=8, l=1, m=1} reduction={l} permutation={j}");
  EXPECT_EQ(text(convolution_rule, {f32({8, 16, 4}), f32({3, 4, 16})}, {f32({2, 16, 16})},
                 {{"dimension_numbers", convolution_numbers()}, {"batch_group_count", number(4)}}),
            "([ij, k, l], [n, l, im])->([j, k, im]) {i=4, j=2, k=16, l=4, m=4, n=1} reduction={l} permutation={k}");
}

TEST(HeavyRules, windows_exchange_edges_even_where_sizes_agree) {
  EXPECT_EQ(text(reduce_window_rule, {f32({8, 16}), f32({})}, {f32({8, 16})}, {{"window_dimensions", ints({1, 16})}}),
            "([i, j], [])->([i, j]) {i=8, j=16} permutation={j}");
  EXPECT_EQ(text(select_and_scatter_rule, {f32({8, 16, 4}), f32({8, 8, 4}), f32({})}, {f32({8, 16, 4})}, {}),
            "([i, k, l], [i, j, l], [])->([i, k, l]) {i=8, j=8, k=16, l=4} need_replication={j} permutation={k}");
}

TEST(HeavyRules, sorting_a_vector_blocks_its_only_dimension) {
  EXPECT_EQ(text(sort_rule, {f32({64})}, {f32({64})}, {{"dimension", number(0)}}),
            "([i])->([i]) {i=64} need_replication={i} blocked_propagation={i}");
  EXPECT_EQ(text(sort_rule, {f32({8, 16})}, {f32({8, 16})}, {{"dimension", number(-1)}}),
            "([i, j])->([i, j]) {i=8, j=16} need_replication={j}");
}

TEST(HeavyRules, linear_algebra_goes_along_batches_only) {
  EXPECT_EQ(text(triangular_solve_rule, {f32({4, 16, 16}), f32({4, 8, 16})}, {f32({4, 8, 16})},
                 {{"left_side", number(0)}, {"transpose_a", {ir::EnumAttr{"transpose", "TRANSPOSE"}}}}),
            "([i, k, l], [i, j, k])->([i, j, l]) {i=4, j=8, k=16, l=16} need_replication={j, k, l}");
  EXPECT_EQ(
      text(triangular_solve_rule, {f32({4, 16, 16}), f32({4, 16, 8})}, {f32({4, 16, 8})}, {{"left_side", number(1)}}),
      "([i, j, l], [i, j, k])->([i, l, k]) {i=4, j=16, k=8, l=16} need_replication={j, k, l}");
  EXPECT_EQ(text(cholesky_rule, {f32({4, 8, 8})}, {f32({4, 8, 8})}, {}),
            "([i, j, k])->([i, j, k]) {i=4, j=8, k=8} need_replication={j, k}");
}

TEST(HeavyRules, a_shorter_spectrum_is_blocked) {
  EXPECT_EQ(text(fft_rule, {f32({8, 16})}, {f32({8, 9})}, {{"fft_length", ints({16})}}),
            "([i, j])->([i, j]) {i=8, j=16} need_replication={j} blocked_propagation={j}");
}

TEST(HeavyRules, random_bits_do_not_go_with_their_state) {
  EXPECT_EQ(text(rng_bit_generator_rule, {f32({2})}, {f32({2}), f32({8, 16})}, {}),
            "([i])->([i], [j, k]) {i=2, j=8, k=16} need_replication={i} blocked_propagation={i}");
}

TEST(HeavyRules, vectors_of_a_batch_norm_go_with_the_feature) {
  EXPECT_EQ(text(batch_norm_rule, {f32({8, 16, 4}), f32({16}), f32({16}), f32({16}), f32({16})}, {f32({8, 16, 4})},
                 {{"feature_index", number(1)}}),
            "([i, j, k], [j], [j], [j], [j])->([i, j, k]) {i=8, j=16, k=4}");
}

}  // namespace
}  // namespace meshd::ops
