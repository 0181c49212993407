// Reshards, reductions over shards and collectives, as plans run on one thread or many.
#include "tests/unit/device/engine_support.h"

namespace meshd::test {
namespace {

using Ints = std::vector<int32_t>;

TEST(PlanCollective, reshard_moves_blocks_between_layouts) {
  LocalBuilder b({2, 2});
  const LocalId x = b.argument("4x4xi32", {{0, 1}, {}});  // rows 0..3 on four positions
  b.result(b.reshard(x, {{}, {1}}));                      // columns over the second sub-axis
  const auto plan = plan_of(b);
  Bench bench;
  const auto out =
      bench.run(plan, {bench.shards<int32_t>({{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}})});
  EXPECT_EQ(output<int32_t>(out), (std::vector<Ints>{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}}));
}

TEST(PlanCollective, uneven_reshard_leaves_padding_alone) {
  LocalBuilder b({4});
  const LocalId x = b.argument("5xi32", {{0}});
  const LocalId whole = b.reshard(x, {{}});
  b.result(whole);
  b.result(b.reshard(whole, {{0}}));
  const auto plan = plan_of(b);
  Bench bench;
  const auto out = bench.run(plan, {bench.shards<int32_t>({{1, 2}, {3, 4}, {5, 0}, {0, 0}})});
  EXPECT_EQ(output<int32_t>(out, 0), (std::vector<Ints>{{1, 2, 3, 4, 5}}));
  EXPECT_EQ(output<int32_t>(out, 1)[2][0], 5);
}

TEST(PlanCollective, reshard_that_only_renames_costs_nothing) {
  LocalBuilder b({2, 2});
  const LocalId x = b.argument("4xi32", {{0}});
  const LocalId varied = b.reshard(x, {{0}}, 0b10);  // the same, counted for every position
  b.result(b.reshard(varied, {{0}}));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->step_count, 0) << to_text(*plan);
  Bench bench;
  EXPECT_EQ(output<int32_t>(bench.run(plan, {bench.shards<int32_t>({{1, 2}, {3, 4}})})),
            (std::vector<Ints>{{1, 2}, {3, 4}}));
}

TEST(PlanCollective, reshard_of_another_devices_shard_is_a_step_where_devices_share_no_memory) {
  const auto build = [](bool shares_memory) {
    LocalBuilder b({2, 2});
    const LocalId x = b.argument("2xi32", {}, 0b11);
    const LocalId dropped = b.reshard(x, {{}}, 0b01);  // whatever its second coordinate, a device gets the first one's
    b.result(b.point("stablehlo.negate", {dropped}));
    b.result(b.reshard(dropped, {{}}, 0b11));
    return plan_of(b, 2, true, shares_memory);
  };
  const auto shared = build(true);
  const auto apart = build(false);
  EXPECT_TRUE(shared->shares_between_devices);
  EXPECT_FALSE(apart->shares_between_devices);
  EXPECT_EQ(apart->step_count, shared->step_count + 1) << to_text(*apart);
  for (const auto& plan : {shared, apart}) {
    Bench bench;
    const auto out = bench.run(plan, {bench.shards<int32_t>({{1, 2}, {3, 4}, {5, 6}, {7, 8}})});
    EXPECT_EQ(output<int32_t>(out, 0), (std::vector<Ints>{{-1, -2}, {-5, -6}}));
    EXPECT_EQ(output<int32_t>(out, 1)[3], (Ints{5, 6}));
  }
}

TEST(PlanCollective, reduction_over_shards_is_computed_once_for_each_distinct_result) {
  LocalBuilder b({2, 2});
  const LocalId x = b.argument("3xi32", {}, 0b11);
  b.result(b.reduce_shards(x, 0b01));
  b.result(b.reduce_shards(x, 0b11));
  b.result(b.reduce_shards(x, 0b11, "stablehlo.maximum"));
  const auto plan = plan_of(b);
  Bench bench;
  const auto out =
      bench.run(plan, {bench.shards<int32_t>({{1, 2, 3}, {10, 20, 30}, {100, 200, 300}, {1000, 2000, 3000}})});
  EXPECT_EQ(output<int32_t>(out, 0), (std::vector<Ints>{{101, 202, 303}, {1010, 2020, 3030}}));
  EXPECT_EQ(output<int32_t>(out, 1), (std::vector<Ints>{{1111, 2222, 3333}}));
  EXPECT_EQ(output<int32_t>(out, 2), (std::vector<Ints>{{1000, 2000, 3000}}));
}

TEST(PlanCollective, reduction_in_ascending_position_order) {
  // a - b is not associative: ((1 - 10) - 100) - 1000.
  LocalBuilder b({4});
  const LocalId x = b.argument("i32", {}, 0b1);
  b.result(b.reduce_shards(x, 0b1, "stablehlo.subtract"));
  Bench bench;
  EXPECT_EQ(output<int32_t>(bench.run(plan_of(b), {bench.shards<int32_t>({{1}, {10}, {100}, {1000}})}))[0][0], -1109);
}

TEST(PlanCollective, collective_of_the_text_reaches_every_member) {
  LocalBuilder b({4});
  const LocalId x = b.argument("2xi32", {}, 0b1);
  const LocalId out = b.value("4xi32", {}, 0b1);
  LocalOp& gather = b.add(LocalKind::kGroup, "stablehlo.all_gather", {x}, {out});
  gather.def = ops::find_op("stablehlo.all_gather");
  gather.attributes = {{"all_gather_dim", attribute(ir::IntegerAttr{0, "i64"})}};
  gather.groups = {{0, 2}, {3, 1}};
  b.result(out);
  Bench bench;
  const auto ran = bench.run(plan_of(b), {bench.shards<int32_t>({{0, 0}, {1, 1}, {2, 2}, {3, 3}})});
  EXPECT_EQ(output<int32_t>(ran), (std::vector<Ints>{{0, 0, 2, 2}, {3, 3, 1, 1}, {0, 0, 2, 2}, {3, 3, 1, 1}}));
}

TEST(PlanCollective, permutation_leaves_zeros_where_nobody_sends) {
  LocalBuilder b({4});
  const LocalId x = b.argument("2xi32", {}, 0b1);
  const LocalId out = b.like(x);
  LocalOp& permute = b.add(LocalKind::kGroup, "stablehlo.collective_permute", {x}, {out});
  permute.def = ops::find_op("stablehlo.collective_permute");
  permute.groups = {{0, 1}, {1, 2}};
  b.result(out);
  Bench bench;
  const auto ran = bench.run(plan_of(b), {bench.shards<int32_t>({{5, 5}, {6, 6}, {7, 7}, {8, 8}})});
  EXPECT_EQ(output<int32_t>(ran), (std::vector<Ints>{{0, 0}, {5, 5}, {6, 6}, {0, 0}}));
}

TEST(PlanCollective, position_is_the_place_in_the_flat_list) {
  LocalBuilder b({2, 2});
  b.program.views[0].flat_of_position = {3, 2, 1, 0};
  b.result(b.position());
  Bench bench;
  const auto ran = bench.run(plan_of(b), {});
  EXPECT_EQ(output<uint32_t>(ran), (std::vector<std::vector<uint32_t>>{{3}, {2}, {1}, {0}}));
}

TEST(PlanCollective, replicated_work_is_done_once) {
  LocalBuilder b({4, 4});
  const LocalId x = b.argument("4xf32", {{0}});
  b.result(b.point("stablehlo.negate", {x}));
  Bench bench;
  const auto ran = bench.run(plan_of(b), {bench.shards<float>({{1}, {2}, {3}, {4}})});
  EXPECT_EQ(ran.stats.kernel_calls, 4);  // of 16 devices
}

}  // namespace
}  // namespace meshd::test
