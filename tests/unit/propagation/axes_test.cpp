#include <gtest/gtest.h>

#include "service/propagation/graph/axis_list.h"
#include "service/propagation/graph/manual.h"
#include "service/propagation/graph/open_sharding.h"
#include "service/propagation/strategies/projection.h"

namespace meshd::propagation {
namespace {

const mesh::Mesh kMesh{{{"a", 4}, {"b", 2}, {"c", 12}}, {}, {}};
constexpr AxisRef kA{0};
constexpr AxisRef kB{1};
constexpr AxisRef kAMajor{0, 1, 2};
constexpr AxisRef kAMinor{0, 2, 2};

TEST(AxisList, containment_and_prefixes_of_parts) {
  EXPECT_TRUE(contains(kA, kAMinor, kMesh));
  EXPECT_FALSE(contains(kAMinor, kA, kMesh));
  EXPECT_FALSE(contains(kA, kB, kMesh));
  EXPECT_TRUE(is_prefix(kAMajor, kA, kMesh));
  EXPECT_FALSE(is_prefix(kAMinor, kA, kMesh));
  EXPECT_TRUE(is_prefix(kA, kA, kMesh));
}

TEST(AxisList, what_is_left_of_an_axis_beside_others) {
  EXPECT_EQ(prefix_beside(kA, {kAMinor}, kMesh), kAMajor);
  EXPECT_EQ(prefix_beside(kA, {kAMajor}, kMesh), std::nullopt);
  EXPECT_EQ(prefix_beside(kA, {kB}, kMesh), kA);
  EXPECT_EQ(prefix_beside({2}, {{2, 6, 2}, {2, 2, 3}}, kMesh), (AxisRef{2, 1, 2}));
}

TEST(AxisList, appending_merges_adjacent_parts) {
  AxisList list = {kB, kAMajor};
  append(list, kAMinor, kMesh);
  EXPECT_EQ(list, (AxisList{kB, kA}));
  append(list, kB, kMesh);
  EXPECT_EQ(list.size(), 3U);
}

TEST(AxisList, prefix_status_looks_into_the_last_axis) {
  EXPECT_EQ(prefix_status({}, {}, kMesh), PrefixStatus::kEqual);
  EXPECT_EQ(prefix_status({}, {kA}, kMesh), PrefixStatus::kStrict);
  EXPECT_EQ(prefix_status({kAMajor}, {kA}, kMesh), PrefixStatus::kStrict);
  EXPECT_EQ(prefix_status({kAMajor, kB}, {kA, kB}, kMesh), PrefixStatus::kNone);
  EXPECT_EQ(prefix_status({kA, kB}, {kA}, kMesh), PrefixStatus::kNone);
}

AxisList agreed(const AxisList& known, const AxisList& next, Growth growth, Growth expected_after) {
  AxisList out = agree(known, next, growth, kMesh);
  EXPECT_EQ(growth, expected_after);
  return out;
}

TEST(AxisList, agreement_grows_until_two_lists_contradict_each_other) {
  EXPECT_EQ(agreed({kA}, {kA, kB}, Growth::kAllowed, Growth::kAllowed), (AxisList{kA, kB}));
  EXPECT_EQ(agreed({kA, kB}, {kA, {2}}, Growth::kAllowed, Growth::kForbidden), (AxisList{kA}));
  EXPECT_EQ(agreed({kAMajor}, {kA}, Growth::kAllowed, Growth::kAllowed), (AxisList{kA}));
  EXPECT_EQ(agreed({kAMajor, kB}, {kA, kB}, Growth::kAllowed, Growth::kForbidden), (AxisList{kAMajor}));
}

TEST(AxisList, agreement_without_growth_keeps_what_is_known) {
  EXPECT_EQ(agreed({kA}, {kA, kB}, Growth::kForbidden, Growth::kForbidden), (AxisList{kA}));
  EXPECT_EQ(agreed({kA, kB}, {kA}, Growth::kForbidden, Growth::kForbidden), (AxisList{kA, kB}));
  EXPECT_EQ(agreed({kAMajor}, {kA}, Growth::kForbidden, Growth::kForbidden), (AxisList{kAMajor}));
}

OpenSharding placed(std::vector<AxisList> dims) {
  OpenSharding out;
  for (AxisList& axes : dims) out.dims.push_back({std::move(axes), true, std::nullopt});
  return out;
}

sharding::FactorRule rule_of_sizes(std::vector<int64_t> sizes) {
  sharding::FactorRule rule;
  for (const int64_t size : sizes) rule.factors.push_back({size, sharding::FactorKind::kPassThrough, false});
  return rule;
}

TEST(Projection, an_axis_is_split_over_the_factors_of_a_dimension) {
  const sharding::FactorRule rule = rule_of_sizes({2, 32});
  const OpenSharding rows = placed({{kA}});
  const TensorProjection seen = project({{0, 1}}, &rows, rule, kMesh);
  EXPECT_EQ(seen.find(0)->axes, (AxisList{kAMajor}));
  EXPECT_EQ(seen.find(1)->axes, (AxisList{kAMinor}));
  EXPECT_EQ(unproject(seen, {{0, 1}}, rule, 0, kMesh), rows);
}

TEST(Projection, axes_that_do_not_fit_overflow_and_close_what_is_behind) {
  const sharding::FactorRule rule = rule_of_sizes({3, 8});
  const OpenSharding rows = placed({{kA, kB}});
  const TensorProjection seen = project({{0, 1}}, &rows, rule, kMesh);
  EXPECT_TRUE(seen.find(0)->axes.empty());
  EXPECT_EQ(seen.find(0)->overflow, (AxisList{kA, kB}));
  EXPECT_TRUE(seen.find(1)->closed);
  EXPECT_EQ(unproject(seen, {{0, 1}}, rule, 0, kMesh).dims[0].axes, (AxisList{kA, kB}));
}

TEST(Projection, axes_behind_a_factor_that_is_not_full_are_left_out) {
  const sharding::FactorRule rule = rule_of_sizes({4, 8});
  TensorProjection seen = project({{0, 1}}, nullptr, rule, kMesh);
  seen.find(0)->axes = {kB};
  seen.find(1)->axes = {kA};
  EXPECT_EQ(unproject(seen, {{0, 1}}, rule, 0, kMesh).dims[0].axes, (AxisList{kB}));
}

TEST(Manual, axes_go_and_come_back_at_the_border) {
  OpenSharding outer = placed({{kA, kB}, {}});
  outer = with_all_manual_axes(std::move(outer), {0, 2});
  EXPECT_EQ(outer.replicated, (AxisList{{2}}));
  const OpenSharding inner = without_manual_axes(outer, {0, 2});
  EXPECT_EQ(inner, placed({{kB}, {}}));
  OpenSharding grown = placed({{kB}, {}});
  EXPECT_EQ(with_free_axes(outer, grown, {0, 2}), outer);
}

TEST(MeshTable, meshes_of_one_content_are_one_and_nameless_ones_get_names) {
  MeshTable table;
  const auto shared = [](mesh::Mesh mesh) { return std::make_shared<const mesh::Mesh>(std::move(mesh)); };
  const mesh::Mesh line{{{"x", 4}}, {}, {}};
  EXPECT_EQ(table.intern("mesh", shared(line)), 0);
  EXPECT_EQ(table.intern("again", shared(line)), 0);
  EXPECT_EQ(table.intern("iota", shared({{{"x", 4}}, {0, 1, 2, 3}, {}})), 0);
  EXPECT_EQ(table.intern("turned", shared({{{"x", 4}}, {3, 2, 1, 0}, {}})), 1);
  EXPECT_EQ(table.intern("", shared({{{"x", 8}}, {}, {}})), 2);
  EXPECT_EQ(table.named()[2].name, "mesh_0");
  EXPECT_EQ(table.intern("", shared({{}, {3}, {}})), 3);
  EXPECT_EQ(table.named()[3].name, "maximal_mesh_3");
}

TEST(MeshTable, axes_of_size_one_are_left_out) {
  MeshTable table;
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"one", 1}, {"x", 4}}, {}, {}});
  sharding::TensorSharding written = sharding::fully_replicated("mesh", mesh, 2);
  written.dims[0].axes = {{0}, {1}};
  written.dims[1].axes = {};
  written.replicated = {{0}};
  const OpenSharding read = table.read(written);
  EXPECT_EQ(read.dims[0].axes, (AxisList{{1}}));
  EXPECT_TRUE(read.replicated.empty());
}

}  // namespace
}  // namespace meshd::propagation
