#include <gtest/gtest.h>

#include "service/core/error.h"
#include "service/sharding/factor_rule.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::sharding {
namespace {

const mesh::MeshRef kMesh =
    std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 2}, {"y", 4}, {"z", 8}, {"one", 1}}, {}, {}});

TensorSharding with_dims(std::vector<std::vector<AxisRef>> dims) {
  TensorSharding out = fully_replicated("mesh", kMesh, static_cast<int64_t>(dims.size()));
  for (size_t i = 0; i < dims.size(); ++i) out.dims[i].axes = dims[i];
  return out;
}

std::string refusal(const TensorSharding& sharding, int64_t rank) {
  try {
    verify(sharding, rank);
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code().word(), "invalid_spec");
    return error.detail();
  }
  return "accepted";
}

TEST(Sharding, prints_as_mlir_does) {
  TensorSharding s = with_dims({{{0}}, {{1, 1, 2}}, {}, {}});
  s.dims[1].open = true;
  s.dims[1].priority = 1;
  s.dims[2].open = true;
  EXPECT_EQ(to_sdy(s), R"(@mesh, [{"x"}, {"y":(1)2, ?}p1, {?}, {}])");
  s.replicated = {{2}};
  s.unreduced = {{1, 2, 2}};
  EXPECT_EQ(to_sdy(s), R"(@mesh, [{"x"}, {"y":(1)2, ?}p1, {?}, {}], replicated={"z"}, unreduced={"y":(2)2})");
  s.unreduced_kind = ReductionKind::kMax;
  s.replicated.clear();
  s.dims.resize(1);
  s.mesh_name = "odd name";
  EXPECT_EQ(to_sdy(s), R"(@"odd name", [{"x"}], unreduced=max{"y":(2)2})");
  s.mesh_name.clear();
  s.unreduced.clear();
  EXPECT_EQ(to_sdy(s), R"(mesh<["x"=2, "y"=4, "z"=8, "one"=1]>, [{"x"}])");
}

TEST(Sharding, equality_looks_at_everything_and_same_placement_at_axes_only) {
  TensorSharding a = with_dims({{{0}}, {}});
  TensorSharding b = a;
  b.dims[1].open = true;
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(is_equivalent(a, b));
  b.unreduced = {{1}};
  EXPECT_FALSE(is_equivalent(a, b));
  b = a;
  b.mesh = std::make_shared<const mesh::Mesh>(*kMesh);
  EXPECT_TRUE(a == b);
}

TEST(Sharding, counts_parts) {
  const TensorSharding s = with_dims({{{0}, {2, 2, 2}}, {}});
  EXPECT_EQ(s.part_count(0), 4);
  EXPECT_EQ(s.part_count(1), 1);
  EXPECT_FALSE(s.is_fully_replicated());
  EXPECT_TRUE(with_dims({{}, {}}).is_fully_replicated());
}

TEST(Sharding, parts_of_an_axis_overlap_where_they_share_digits) {
  EXPECT_TRUE(overlaps({2, 1, 4}, {2, 2, 4}, *kMesh));
  EXPECT_FALSE(overlaps({2, 1, 2}, {2, 2, 2}, *kMesh));
  EXPECT_TRUE(overlaps({2}, {2, 4, 2}, *kMesh));
  EXPECT_FALSE(overlaps({2}, {1}, *kMesh));
}

TEST(Sharding, canonical_axes_drop_size_one_and_merge_neighbours) {
  EXPECT_EQ(canonical_axes({{3}, {2, 1, 2}, {2, 2, 2}, {0}}, *kMesh), (std::vector<AxisRef>{{2, 1, 4}, {0}}));
  EXPECT_EQ(canonical_axes({{2, 1, 2}, {2, 2, 2}, {2, 4, 2}}, *kMesh), (std::vector<AxisRef>{{2}}));
  EXPECT_EQ(canonical_axes({{2, 2, 2}, {2, 1, 2}}, *kMesh), (std::vector<AxisRef>{{2, 2, 2}, {2, 1, 2}}));
}

TEST(Sharding, duplicate_axes_are_refused_with_their_names) {  // behaviour G10
  EXPECT_NE(refusal(with_dims({{{0}}, {{0}}}), 2).find("at most one positional dimension"), std::string::npos);
  EXPECT_NE(refusal(with_dims({{{1}}, {{0}, {1}, {0}}}), 2).find("duplicate entries for `x`, `y`"), std::string::npos);
  TensorSharding replicated = with_dims({{{0}}});
  replicated.replicated = {{0}};
  EXPECT_NE(refusal(replicated, 1).find("duplicate entries for `x`"), std::string::npos);
  TensorSharding unreduced = with_dims({{{2, 2, 2}}});
  unreduced.unreduced = {{2}};
  EXPECT_NE(refusal(unreduced, 1).find("duplicate entries for `z`"), std::string::npos);
}

TEST(Sharding, unknown_axis_is_refused) {  // behaviour G11
  EXPECT_NE(refusal(with_dims({{{4}}}), 1).find("unknown axis"), std::string::npos);
}

TEST(Sharding, wrong_rank_is_refused_with_both_ranks) {  // behaviour G12
  EXPECT_NE(refusal(with_dims({{{0}}, {}}), 1).find("rank at least 2"), std::string::npos);
  EXPECT_NE(refusal(with_dims({{{0}}}), 2).find("has 1 dimensions"), std::string::npos);
  TensorSharding maximal;
  maximal.mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{}, {3}, {}});
  EXPECT_EQ(refusal(maximal, 2), "accepted");
}

TEST(Sharding, bad_parts_of_axes_are_refused) {
  EXPECT_NE(refusal(with_dims({{{2, 1, 3}}}), 1).find("does not divide"), std::string::npos);
  EXPECT_NE(refusal(with_dims({{{2, 1, 8}}}), 1).find("whole axis"), std::string::npos);
  EXPECT_NE(refusal(with_dims({{{2, 2, 1}}}), 1).find("greater than 1"), std::string::npos);
  EXPECT_NE(refusal(with_dims({{{2, 1, 2}, {2, 2, 2}}}), 1).find("can be merged"), std::string::npos);
  EXPECT_EQ(refusal(with_dims({{{2, 2, 2}, {2, 1, 2}}}), 1), "accepted");
}

TEST(Sharding, priority_on_a_dimension_that_cannot_change_is_refused) {
  TensorSharding s = with_dims({{}});
  s.dims[0].priority = 0;
  EXPECT_NE(refusal(s, 1).find("empty and closed"), std::string::npos);
  s.dims[0].open = true;
  EXPECT_EQ(refusal(s, 1), "accepted");
  s.replicated = {{1}, {0}};
  EXPECT_NE(refusal(s, 1).find("order of the mesh"), std::string::npos);
}

TEST(FactorRule, matrix_product_prints_as_shardy_does) {
  FactorRuleBuilder b({{8, 16}, {16, 32}}, {{8, 32}});
  b.factor({0, -1}, {0}, 8).factor({-1, 1}, {1}, 32).factor({1, 0}, {-1}, 16, FactorKind::kReduction);
  EXPECT_EQ(to_sdy(b.build()), "([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}");
}

TEST(FactorRule, dimensions_without_factor_get_one_of_size_one) {
  FactorRuleBuilder b({{4, 1, 8}, {}}, {{4, 8}});
  b.factor({0, -1}, {0}, 4).factor({2, -1}, {1}, 8, FactorKind::kPermutation, true);
  EXPECT_EQ(to_sdy(b.build()), "([i, k, j], [])->([i, j]) {i=4, j=8, k=1} permutation={j} blocked_propagation={j}");
}

TEST(FactorRule, pointwise_gives_scalars_nothing) {
  EXPECT_EQ(to_sdy(FactorRuleBuilder({{}, {8, 16}}, {{8, 16}}).pointwise().build()),
            "([], [i, j])->([i, j]) {i=8, j=16}");
  EXPECT_EQ(to_sdy(FactorRuleBuilder({{}}, {{}}).pointwise().build()), "([])->([])");
}

TEST(FactorRule, names_go_on_behind_z) {
  const FactorRule rule = FactorRuleBuilder({}, {tensor::Dims(20, 2)}).pointwise().build();
  EXPECT_NE(to_sdy(rule).find("y, z, z_1, z_2]"), std::string::npos);
}

TEST(FactorRule, reshape_has_two_factors_in_a_dimension) {
  FactorRuleBuilder b({{2, 32}}, {{64}});
  b.factor({0}, {0}, 2).factor({1}, {0}, 32);
  EXPECT_EQ(to_sdy(b.build()), "([i, j])->([ij]) {i=2, j=32}");
}

}  // namespace
}  // namespace meshd::sharding
