#include <gtest/gtest.h>

#include "service/propagation/strategies/factor_propagation.h"

namespace meshd::propagation {
namespace {

const mesh::Mesh kMesh{{{"x", 2}, {"y", 4}}, {}, {}};
constexpr AxisRef kX{0};
constexpr AxisRef kY{1};

OpenSharding placed(std::vector<AxisList> dims, bool open = true) {
  OpenSharding out;
  for (AxisList& axes : dims) out.dims.push_back({std::move(axes), open, std::nullopt});
  return out;
}

/// 8x16 . 16x32 -> 8x32.
sharding::FactorRule matmul() {
  sharding::FactorRuleBuilder builder({{8, 16}, {16, 32}}, {{8, 32}});
  builder.factor({0, -1}, {0}, 8).factor({-1, 1}, {1}, 32);
  builder.factor({1, 0}, {-1}, 16, sharding::FactorKind::kReduction);
  return builder.build();
}

struct Grown3 {
  OpenSharding lhs, rhs, result;
};

Grown3 grown(const sharding::FactorRule& rule, const OpenSharding& lhs, const OpenSharding& rhs,
             const OpenSharding& result, Direction direction, bool elementwise = false) {
  Projection projection;
  projection.operands = {project(rule.operands[0], &lhs, rule, kMesh), project(rule.operands[1], &rhs, rule, kMesh)};
  projection.results = {project(rule.results[0], &result, rule, kMesh)};
  grow(projection, rule, std::vector<Direction>(rule.factors.size(), direction), elementwise, kMesh);
  return {unproject(projection.operands[0], rule.operands[0], rule, 0, kMesh),
          unproject(projection.operands[1], rule.operands[1], rule, 0, kMesh),
          unproject(projection.results[0], rule.results[0], rule, 0, kMesh)};
}

const OpenSharding kFree = placed({{}, {}});

TEST(Growth, a_matrix_product_takes_rows_of_one_and_columns_of_the_other) {
  const Grown3 out = grown(matmul(), placed({{kX}, {}}), placed({{}, {kY}}), kFree, Direction::kBoth);
  EXPECT_EQ(out.result, placed({{kX}, {kY}}));
  EXPECT_EQ(out.lhs, placed({{kX}, {}}));
}

TEST(Growth, the_contracted_dimension_passes_between_operands) {
  const Grown3 out = grown(matmul(), placed({{}, {kX}}), kFree, kFree, Direction::kBoth);
  EXPECT_EQ(out.rhs, placed({{kX}, {}}));
  EXPECT_EQ(out.result, kFree);
}

TEST(Growth, nothing_flows_against_the_direction) {
  EXPECT_EQ(grown(matmul(), placed({{kX}, {}}), kFree, kFree, Direction::kBackward).result, kFree);
  EXPECT_EQ(grown(matmul(), placed({{kX}, {}}), kFree, kFree, Direction::kForward).result, placed({{kX}, {}}));
  EXPECT_EQ(grown(matmul(), kFree, kFree, placed({{kX}, {}}), Direction::kForward).lhs, kFree);
  EXPECT_EQ(grown(matmul(), placed({{kX}, {}}), kFree, kFree, Direction::kNone).result, kFree);
}

TEST(Growth, closed_dimensions_and_reserved_axes_do_not_grow) {
  EXPECT_EQ(grown(matmul(), placed({{kX}, {}}), kFree, placed({{}, {}}, false), Direction::kBoth).result,
            placed({{}, {}}, false));
  OpenSharding reserved = kFree;
  reserved.replicated = {kX};
  EXPECT_EQ(grown(matmul(), placed({{kX}, {}}), kFree, reserved, Direction::kBoth).result, reserved);
}

TEST(Growth, one_axis_wanted_by_two_dimensions_goes_to_the_larger_tensor) {
  // lhs has 128 elements, rhs 512: columns win.
  EXPECT_EQ(grown(matmul(), placed({{kX}, {}}), placed({{}, {kX}}), kFree, Direction::kBoth).result,
            placed({{}, {kX}}));
}

TEST(Growth, two_axes_for_one_dimension_leave_their_common_prefix) {
  const sharding::FactorRule add = sharding::FactorRuleBuilder({{8, 16}, {8, 16}}, {{8, 16}}).pointwise().build();
  const Grown3 out = grown(add, placed({{kX}, {}}), placed({{kY}, {}}), kFree, Direction::kBoth, true);
  EXPECT_EQ(out.result, kFree);
  EXPECT_EQ(grown(add, placed({{kX, kY}, {}}), placed({{kX}, {}}), kFree, Direction::kBoth, true).result,
            placed({{kX, kY}, {}}));
}

TEST(Growth, an_elementwise_operand_takes_no_more_than_the_result) {
  const sharding::FactorRule add = sharding::FactorRuleBuilder({{8, 16}, {8, 16}}, {{8, 16}}).pointwise().build();
  const OpenSharding closed = placed({{}, {}}, false);
  EXPECT_EQ(grown(add, placed({{kX}, {}}), kFree, closed, Direction::kBoth, true).rhs, kFree);
}

TEST(Growth, an_axis_is_cut_to_what_divides_a_major_factor) {
  sharding::FactorRuleBuilder builder({{2, 8}, {2, 8}}, {{16}});
  builder.factor({0, 0}, {0}, 2).factor({1, 1}, {0}, 8);
  const Grown3 out = grown(builder.build(), placed({{kY}, {}}), kFree, placed({{}}), Direction::kBoth);
  EXPECT_EQ(out.result, placed({{{1, 1, 2}}}));
}

}  // namespace
}  // namespace meshd::propagation
