// Liveness, sharing of memory, donation, and bytes that are known before the run.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>

#include "service/compile/pipeline.h"
#include "service/compile/stages.h"
#include "tests/unit/device/engine_support.h"

namespace meshd::test {
namespace {

using Floats = std::vector<float>;

// A step that cannot be fused and does not work in place: transpose of a square matrix.
LocalId transpose(LocalBuilder& b, LocalId x) {
  const LocalId out = b.like(x);
  b.op("stablehlo.transpose", {x}, {out}, {{"permutation", attribute(ir::IntArrayAttr{{1, 0}, "i64"})}});
  return out;
}

TEST(PlanStorage, memory_is_used_again) {
  LocalBuilder b({1});
  LocalId x = b.argument("16x16xf32");
  for (int i = 0; i < 6; ++i) x = transpose(b, x);
  b.result(x);
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->memory.arena, 2 * 1024) << to_text(*plan);  // two live at once, however many there are
  EXPECT_EQ(plan->memory.own, 1024);
  EXPECT_EQ(plan->peak_bytes, 1024 + 2 * 1024 + 1024);
}

TEST(PlanStorage, peak_is_what_the_run_allocates) {
  LocalBuilder b({4});
  LocalId x = b.argument("64x16xf32", {{0}});
  x = transpose(b, b.point("stablehlo.negate", {transpose(b, x)}));
  b.result(x);
  const auto plan = plan_of(b);
  Bench bench;
  const std::vector<Floats> in(4, Floats(256, 1));
  const auto out = bench.run(plan, {bench.shards<float>(in)});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out.stats.peak_bytes, plan->peak_bytes);
  EXPECT_EQ(out.stats.allocated_bytes, plan->memory.arena + plan->memory.own + plan->memory.scratch);
}

/// Lines of 2^16 floats, sorted: each is a work item with scratch of its own.
compile::PlanRef sort_plan(int lines, int threads) {
  const std::string text = fmt::format(R"(func.func @main(%x: tensor<{0}x65536xf32>) -> tensor<{0}x65536xf32> {{
  %0 = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}) : (tensor<{0}x65536xf32>) -> tensor<{0}x65536xf32>
  return %0 : tensor<{0}x65536xf32>
}})",
                                       lines);
  const compile::LowerRequest request;
  const auto parsed = compile::Compiler(1, 8).parse("stablehlo", text);
  compile::PlanOptions options;
  options.threads = threads;
  return compile::make_plan(compile::partition_for(compile::propagate_for(*parsed, request), request), options);
}

TEST(PlanStorage, scratch_is_for_the_calls_that_run_at_once) {
  constexpr int64_t kOfLine = 16 * 65536;  // eight bytes an element, and as much again
  EXPECT_EQ(sort_plan(1, 1)->memory.scratch, kOfLine);
  EXPECT_EQ(sort_plan(1, 8)->memory.scratch, kOfLine) << "one work item is one thread's";
  EXPECT_EQ(sort_plan(3, 8)->memory.scratch, 3 * kOfLine);
  EXPECT_EQ(sort_plan(64, 8)->memory.scratch, 8 * kOfLine);
}

TEST(PlanStorage, work_items_on_more_threads_than_there_are_items_have_their_own_scratch) {
  std::mt19937 random(3);
  for (const int lines : {1, 2, 3, 17}) {
    const compile::PlanRef plan = sort_plan(lines, 4);
    Floats in(static_cast<size_t>(lines) * 65536);
    for (float& x : in) x = std::normal_distribution<float>()(random);
    Floats sorted = in;
    for (auto line = sorted.begin(); line != sorted.end(); line += 65536) std::sort(line, line + 65536);
    Bench bench({.device_count = 8, .threads = 4});
    const auto out = bench.run(plan, {bench.shards<float>({in})});
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(output<float>(out)[0], sorted);
  }
}

TEST(PlanStorage, donated_argument_becomes_the_result) {
  LocalBuilder b({1});
  const LocalId x = b.argument("1024xf32");
  b.result(b.point("stablehlo.negate", {x}));
  b.donate(0, 0);
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->memory.own, 0) << to_text(*plan);
  EXPECT_EQ(plan->peak_bytes, 4096);
  EXPECT_EQ(plan->arguments[0].aliased, 0);
  Bench bench;
  auto argument = bench.shards<float>({Floats(1024, 2)}, true);
  const tensor::BufferRef given = argument.shards[0];
  const auto out = bench.run(plan, {argument});
  EXPECT_EQ(out.outputs[0][0], given);
  EXPECT_EQ(output<float>(out)[0], Floats(1024, -2));
  EXPECT_EQ(out.overwritten, (std::vector<int64_t>{0}));
}

TEST(PlanStorage, donated_argument_that_may_not_be_written_is_copied) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  b.result(b.point("stablehlo.negate", {x}));
  b.donate(0, 0);
  const auto plan = plan_of(b);
  Bench bench;
  auto argument = bench.shards<float>({{1, 2, 3, 4}}, false);
  const tensor::BufferRef given = argument.shards[0];
  const auto out = bench.run(plan, {argument});
  EXPECT_NE(out.outputs[0][0], given);
  EXPECT_EQ(output<float>(out)[0], (Floats{-1, -2, -3, -4}));
  EXPECT_EQ(values_of<float>(given), (Floats{1, 2, 3, 4}));
  EXPECT_TRUE(out.overwritten.empty());
}

TEST(PlanStorage, argument_that_is_not_donated_stays_what_it_is) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  b.result(b.point("stablehlo.negate", {x}));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->peak_bytes, 32);
  Bench bench;
  auto argument = bench.shards<float>({{1, 2, 3, 4}}, true);
  const tensor::BufferRef given = argument.shards[0];
  const auto out = bench.run(plan, {argument});
  EXPECT_NE(out.outputs[0][0], given);
  EXPECT_EQ(values_of<float>(given), (Floats{1, 2, 3, 4}));
}

TEST(PlanStorage, donated_argument_read_too_late_is_not_written) {
  // The result is there before the argument's last reader.
  LocalBuilder b({1});
  const LocalId x = b.argument("16x16xf32");
  const LocalId t = transpose(b, x);
  b.result(t);
  b.result(b.point("stablehlo.add", {x, t}));
  b.donate(0, 0);
  const auto plan = plan_of(b);
  Bench bench;
  Floats in(256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  const auto out = bench.run(plan, {bench.shards<float>({in}, true)});
  EXPECT_EQ(output<float>(out, 0)[0][1], 16);
  EXPECT_EQ(output<float>(out, 1)[0][1], 17);
}

TEST(PlanStorage, passed_through_argument_is_the_same_buffer) {
  LocalBuilder b({1});
  b.result(b.argument("4xf32"));
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->step_count, 0);
  Bench bench;
  auto argument = bench.shards<float>({{1, 2, 3, 4}});
  const auto out = bench.run(plan, {argument});
  EXPECT_EQ(out.outputs[0][0], argument.shards[0]);
}

TEST(PlanStorage, constant_result_does_not_leave_the_plan) {
  LocalBuilder b({2});
  b.result(b.constant<float>("4xf32", {1, 2, 3, 4}, {{0}}));
  const auto plan = plan_of(b);
  Bench bench;
  const auto first = bench.run(plan, {});
  const auto second = bench.run(plan, {});
  EXPECT_EQ(output<float>(first), (std::vector<Floats>{{1, 2}, {3, 4}}));
  EXPECT_NE(first.outputs[0][0], second.outputs[0][0]);
}

// A loop of three iterations; result 1 is `x` after them.
std::vector<LocalId> three_times(LocalBuilder& b, LocalId x, const std::function<LocalId(LocalId)>& body) {
  const LocalId n = b.splat<int32_t>("i32", 0);
  return b.loop(
      {n, x}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 3)); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}), body(v[1])};
      });
}

TEST(PlanStorage, loop_variable_is_written_in_place) {
  LocalBuilder b({1});
  const LocalId x = b.argument("1000xf32");
  const auto out = three_times(b, x, [&](LocalId v) { return b.point("stablehlo.add", {v, v}); });
  b.result(out[1]);
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->memory.own, 4000) << to_text(*plan);
  Bench bench;
  EXPECT_EQ(output<float>(bench.run(plan, {bench.shards<float>({Floats(1000, 1)})}))[0], Floats(1000, 8));
}

TEST(PlanStorage, loop_over_a_donated_argument_needs_no_second_buffer) {
  LocalBuilder b({1});
  const LocalId x = b.argument("1000xf32");
  const auto out = three_times(b, x, [&](LocalId v) { return b.point("stablehlo.add", {v, v}); });
  b.result(out[1]);
  b.donate(0, 0);
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->memory.own, 0) << to_text(*plan);
  Bench bench;
  EXPECT_EQ(output<float>(bench.run(plan, {bench.shards<float>({Floats(1000, 1)}, true)}))[0], Floats(1000, 8));
}

TEST(PlanStorage, loop_variable_that_cannot_be_in_place_changes_buffers) {
  LocalBuilder b({1});
  const LocalId x = b.argument("16x16xf32");
  const auto out = three_times(b, x, [&](LocalId v) { return transpose(b, v); });
  b.result(out[1]);
  const auto plan = plan_of(b);
  EXPECT_EQ(plan->memory.own, 2048) << to_text(*plan);
  // Three iterations of one transpose each, no copies but the first.
  Bench bench;
  Floats in(256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  const auto ran = bench.run(plan, {bench.shards<float>({in})});
  EXPECT_EQ(output<float>(ran)[0][1], 16);
}

TEST(PlanStorage, carried_values_change_places) {
  // Fibonacci: (a, b) -> (b, a + b), and the first two swap in another loop.
  LocalBuilder b({1});
  const LocalId n = b.splat<int32_t>("i32", 0);
  const LocalId one = b.splat<int32_t>("i32", 1);
  const auto out = b.loop(
      {n, n, one}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 10)); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}), v[2],
                                    b.point("stablehlo.add", {v[1], v[2]})};
      });
  const auto swapped = b.loop(
      {n, out[1], out[2]}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 3)); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}), v[2], v[1]};
      });
  for (const LocalId id : {out[1], out[2], swapped[1], swapped[2]}) b.result(id);
  const auto plan = plan_of(b);
  Bench bench;
  const auto ran = bench.run(plan, {});
  EXPECT_EQ(output<int32_t>(ran, 0)[0][0], 55) << to_text(*plan);
  EXPECT_EQ(output<int32_t>(ran, 1)[0][0], 89);
  EXPECT_EQ(output<int32_t>(ran, 2)[0][0], 89);
  EXPECT_EQ(output<int32_t>(ran, 3)[0][0], 55);
}

TEST(PlanStorage, loop_without_iterations_gives_its_initial_values) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  const auto out = b.loop(
      {x}, [&](const auto&) { return b.splat<uint8_t>("i1", 0); },
      [&](const auto& v) { return std::vector<LocalId>{b.point("stablehlo.negate", {v[0]})}; });
  b.result(out[0]);
  b.result(x);
  const auto plan = plan_of(b);
  Bench bench;
  const auto ran = bench.run(plan, {bench.shards<float>({{1, 2, 3, 4}})});
  EXPECT_EQ(output<float>(ran, 0)[0], (Floats{1, 2, 3, 4}));
  EXPECT_EQ(output<float>(ran, 1)[0], (Floats{1, 2, 3, 4}));
}

TEST(PlanStorage, steady_runs_allocate_nothing_new) {
  LocalBuilder b({2});
  const LocalId x = b.argument("512x16xf32", {{0}});
  b.result(b.point("stablehlo.tanh", {transpose(b, b.reshard(transpose(b, b.reshard(x, {})), {}))}));
  const auto plan = plan_of(b);
  Bench bench;
  auto argument = bench.shards<float>({Floats(4096, 1), Floats(4096, 1)});
  for (int i = 0; i < 3; ++i) bench.run(plan, {argument});
  const int64_t before = bench.pool->stats().fresh_allocations;
  for (int i = 0; i < 10; ++i) bench.run(plan, {argument});
  EXPECT_EQ(bench.pool->stats().fresh_allocations, before);
}

}  // namespace
}  // namespace meshd::test
