// Chains become one step; what is read through movement ops, generated or constant never reaches memory.
#include "tests/unit/device/engine_support.h"

namespace meshd::test {
namespace {

using Floats = std::vector<float>;

TEST(PlanFusion, pointwise_chain_is_one_step) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  const LocalId y = b.argument("4xf32");
  const LocalId sum = b.point("stablehlo.add", {x, y});
  const LocalId twice = b.point("stablehlo.multiply", {sum, sum});
  b.result(b.point("stablehlo.subtract", {twice, x}));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  EXPECT_EQ(plan->memory.arena, 0);
  Bench bench;
  const auto out = bench.run(plan, {bench.shards<float>({{1, 2, 3, 4}}), bench.shards<float>({{1, 1, 1, 1}})});
  EXPECT_EQ(output<float>(out)[0], (Floats{3, 7, 13, 21}));
}

// The fusion ends behind the branch, which has to wait for it: once, not for each read.
TEST(PlanFusion, branch_may_read_often_what_is_fused_with_an_op_behind_it) {
  LocalBuilder b({1});
  const LocalId x = b.argument("2xf32");
  const LocalId index = b.argument("i32");
  const LocalId twice = b.point("stablehlo.add", {x, x});
  const auto many = [&] {
    LocalId sum = twice;
    for (int i = 0; i < 200; ++i) sum = b.point("stablehlo.add", {sum, twice});
    return std::vector{sum};
  };
  b.result(b.branch(index, {many, [&] { return std::vector{x}; }})[0]);
  b.result(b.point("stablehlo.multiply", {twice, twice}));
  Bench bench;
  const auto out = bench.run(plan_of(b), {bench.shards<float>({{1, 2}}), bench.shards<int32_t>({{0}})});
  EXPECT_EQ(output<float>(out, 0)[0], (Floats{402, 804}));
  EXPECT_EQ(output<float>(out, 1)[0], (Floats{4, 16}));
}

TEST(PlanFusion, without_fusing_the_result_is_the_same) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  const LocalId sum = b.point("stablehlo.add", {x, x});
  b.result(b.point("stablehlo.tanh", {b.point("stablehlo.multiply", {sum, x})}));
  const auto fused = plan_of(b);
  const auto single = plan_of(b, 2, false);
  EXPECT_EQ(fused->step_count, 1);
  EXPECT_EQ(single->step_count, 3);
  Bench bench;
  const Floats in = {0.1F, -0.5F, 2, 7};
  EXPECT_EQ(output<float>(bench.run(fused, {bench.shards<float>({in})})),
            output<float>(bench.run(single, {bench.shards<float>({in})})));
}

// The conversion has no memory unless others read it; what made the reals stays a chain of its own.
TEST(PlanFusion, transforms_read_reals_before_their_conversion) {
  for (const bool is_read_by_others : {false, true}) {
    LocalBuilder b({1});
    const LocalId x = b.argument("6x8xf32");
    const LocalId twice = b.point("stablehlo.add", {x, x});
    const LocalId whole = b.like(twice, "complex<f32>");
    b.op("stablehlo.convert", {twice}, {whole});
    const LocalId out = b.like(whole);
    b.op("stablehlo.fft", {whole}, {out},
         {{"fft_type", attribute(ir::EnumAttr{"fft_type", "FFT"})},
          {"fft_length", attribute(ir::IntArrayAttr{{6, 8}, "i64"})}});
    b.result(out);
    if (is_read_by_others) b.result(whole);
    const auto fused = plan_of(b);
    const auto single = plan_of(b, 2, false);
    EXPECT_EQ(fused->step_count, 2) << to_text(*fused);
    EXPECT_NE(to_text(*fused).find("fused convert fft"), std::string::npos) << to_text(*fused);
    EXPECT_EQ(single->step_count, 3) << to_text(*single);
    Bench bench;
    Floats in;
    for (int i = 0; i < 48; ++i) in.push_back(static_cast<float>(i * i % 17) - 7.5F);
    const Floats got = output<float>(bench.run(fused, {bench.shards<float>({in})}))[0];
    const Floats right = output<float>(bench.run(single, {bench.shards<float>({in})}))[0];
    ASSERT_EQ(got.size(), right.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], right[i], 1e-4) << i;
  }
}

TEST(PlanFusion, several_results_of_a_chain_are_written_by_one_step) {
  LocalBuilder b({1});
  const LocalId x = b.argument("3xf32");
  const LocalId e = b.point("stablehlo.exponential", {x});
  b.result(b.point("stablehlo.add", {e, x}));
  b.result(b.point("stablehlo.negate", {e}));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  Bench bench;
  const auto out = bench.run(plan, {bench.shards<float>({{0, 0, 0}})});
  EXPECT_EQ(output<float>(out, 0)[0], (Floats{1, 1, 1}));
  EXPECT_EQ(output<float>(out, 1)[0], (Floats{-1, -1, -1}));
}

TEST(PlanFusion, broadcast_and_constant_are_ways_of_reading) {
  LocalBuilder b({1});
  const LocalId x = b.argument("2x3xf32");
  const LocalId row = b.argument("3xf32");
  const LocalId wide = b.broadcast(row, "2x3xf32", {1});
  const LocalId two = b.splat<float>("2x3xf32", 2);
  b.result(b.point("stablehlo.multiply", {b.point("stablehlo.add", {x, wide}), two}));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  EXPECT_EQ(plan->memory.constants, 0);
  EXPECT_EQ(plan->memory.arena, 0);
  Bench bench;
  const auto out = bench.run(plan, {bench.shards<float>({{1, 2, 3, 4, 5, 6}}), bench.shards<float>({{10, 20, 30}})});
  EXPECT_EQ(output<float>(out)[0], (Floats{22, 44, 66, 28, 50, 72}));
}

TEST(PlanFusion, movement_ops_compose) {
  LocalBuilder b({1});
  const LocalId x = b.argument("6xf32");
  const LocalId slice = b.value("3xf32");
  b.op("stablehlo.slice", {x}, {slice},
       {{"start_indices", attribute(ir::IntArrayAttr{{1}, "i64"})},
        {"limit_indices", attribute(ir::IntArrayAttr{{6}, "i64"})},
        {"strides", attribute(ir::IntArrayAttr{{2}, "i64"})}});
  const LocalId back = b.like(slice);
  b.op("stablehlo.reverse", {slice}, {back}, {{"dimensions", attribute(ir::IntArrayAttr{{0}, "i64"})}});
  const LocalId column = b.value("3x1xf32");
  b.op("stablehlo.reshape", {back}, {column});
  const LocalId wide = b.broadcast(column, "3x2xf32", {0, 1});
  b.result(b.point("stablehlo.negate", {wide}));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  Bench bench;
  const auto out = bench.run(plan, {bench.shards<float>({{0, 1, 2, 3, 4, 5}})});
  EXPECT_EQ(output<float>(out)[0], (Floats{-5, -5, -3, -3, -1, -1}));
}

// As long as a program may be: the stack does not grow with a chain, neither where its readers are sought nor where it
// is read through.
TEST(PlanFusion, long_chains_of_movement_ops_are_planned) {
  LocalBuilder b({1});
  const LocalId x = b.argument("2xf32");
  const LocalId twice = b.point("stablehlo.add", {x, x});
  LocalId last = twice;
  for (int i = 0; i < 90'001; ++i) {
    const LocalId back = b.like(last);
    b.op("stablehlo.reverse", {last}, {back}, {{"dimensions", attribute(ir::IntArrayAttr{{0}, "i64"})}});
    last = back;
  }
  b.result(b.point("stablehlo.multiply", {twice, twice}));
  b.result(b.point("stablehlo.subtract", {last, x}));
  Bench bench;
  const auto out = bench.run(plan_of(b), {bench.shards<float>({{1, 3}})});
  EXPECT_EQ(output<float>(out, 0)[0], (Floats{4, 36}));
  EXPECT_EQ(output<float>(out, 1)[0], (Floats{5, -1}));
}

TEST(PlanFusion, reshape_between_steps_is_another_name) {
  LocalBuilder b({1});
  const LocalId x = b.argument("2x3xf32");
  const LocalId e = b.point("stablehlo.negate", {x});
  const LocalId flat = b.value("6xf32");
  b.op("stablehlo.reshape", {e}, {flat});
  b.result(flat);
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  EXPECT_EQ(plan->memory.own, 24);
  Bench bench;
  EXPECT_EQ(output<float>(bench.run(plan, {bench.shards<float>({{1, 2, 3, 4, 5, 6}})}))[0],
            (Floats{-1, -2, -3, -4, -5, -6}));
}

TEST(PlanFusion, iota_knows_where_its_shard_begins) {
  LocalBuilder b({4});
  const LocalId x = b.argument("8xf32", {{0}});
  const LocalId index = b.like(x);
  b.op("stablehlo.iota", {}, {index}, {{"iota_dimension", attribute(ir::IntegerAttr{0, "i64"})}});
  b.result(b.point("stablehlo.add", {x, index}));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->step_count, 1) << to_text(*plan);
  Bench bench;
  const auto out = bench.run(plan, {bench.shards<float>({{0, 0}, {0, 0}, {0, 0}, {100, 100}})});
  EXPECT_EQ(output<float>(out), (std::vector<Floats>{{0, 1}, {2, 3}, {4, 5}, {106, 107}}));
}

TEST(PlanFusion, mask_replaces_rows_beyond_the_end) {
  LocalBuilder b({4});
  const LocalId x = b.argument("5xi32", {{0}});  // shards of two rows, the last two are short or empty
  const LocalId fill = b.splat<int32_t>("i32", -1);
  const LocalId masked = b.like(x);
  b.add(LocalKind::kMask, "mask", {x, fill}, {masked});
  b.result(masked);
  const auto plan = plan_of(b);
  Bench bench;
  const auto out = bench.run(plan, {bench.shards<int32_t>({{1, 2}, {3, 4}, {5, 99}, {99, 99}})});
  EXPECT_EQ(output<int32_t>(out), (std::vector<std::vector<int32_t>>{{1, 2}, {3, 4}, {5, -1}, {-1, -1}}));
}

TEST(PlanFusion, scalar_operands_of_larger_ops_are_broadcast) {
  LocalBuilder b({1});
  const LocalId low = b.argument("f32");
  const LocalId x = b.argument("3xf32");
  const LocalId high = b.splat<float>("f32", 2);
  const LocalId out = b.like(x);
  b.op("stablehlo.clamp", {low, x, high}, {out});
  b.result(out);
  const auto plan = plan_of(b);
  Bench bench;
  EXPECT_EQ(output<float>(bench.run(plan, {bench.shards<float>({{1}}), bench.shards<float>({{0, 1.5F, 9}})}))[0],
            (Floats{1, 1.5F, 2}));
}

TEST(PlanFusion, chain_waits_for_the_step_between) {
  // a -> reverse (not fused into a) -> used with a: the second use must come behind the reverse of a stored value.
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  const LocalId a = b.point("stablehlo.negate", {x});
  const LocalId r = b.like(a);
  b.op("stablehlo.reverse", {a}, {r}, {{"dimensions", attribute(ir::IntArrayAttr{{0}, "i64"})}});
  b.result(b.point("stablehlo.add", {a, r}));
  const auto plan = plan_of(b);
  Bench bench;
  EXPECT_EQ(output<float>(bench.run(plan, {bench.shards<float>({{1, 2, 3, 4}})}))[0], (Floats{-5, -5, -5, -5}));
}

TEST(PlanFusion, dead_ops_leave_no_step) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  b.point("stablehlo.tanh", {x});
  b.result(b.point("stablehlo.negate", {x}));
  EXPECT_EQ(plan_of(b)->step_count, 1);
}

TEST(PlanFusion, every_line_of_a_chain_is_kept) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  b.result(b.point("stablehlo.negate", {b.point("stablehlo.abs", {x})}));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->block(0).steps[0].lines, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(plan->block(0).steps[0].name, "fused abs negate (2 ops)");
}

TEST(PlanFusion, missing_kernel_names_line_and_op) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xi1");
  b.result(b.point("stablehlo.tanh", {x}));
  const std::string error = error_of([&] { plan_of(b); });
  EXPECT_NE(error.find("unsupported_dtype"), std::string::npos) << error;
  EXPECT_NE(error.find("line 1"), std::string::npos) << error;
}

TEST(PlanFusion, large_splat_is_written_where_it_is_needed) {
  LocalBuilder b({1});
  const LocalId zeros = b.splat<float>("100000xf32", 3);
  b.result(zeros);
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->memory.constants, 0);
  Bench bench;
  const auto out = output<float>(bench.run(plan, {}));
  EXPECT_EQ(out[0].size(), 100000U);
  EXPECT_EQ(out[0].back(), 3);
}

}  // namespace
}  // namespace meshd::test
