// What a run tells of itself while it runs: steps, how many there will be, iterations of its outermost loop.
#include <optional>

#include "tests/support/eventually.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

/// x += x, `outer` times as many as `inner` times; the loops' iterations are known to the plan where `are_known`.
compile::PlanRef loops(int32_t outer, int32_t inner, bool are_known, bool small_whiles) {
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  const LocalId zero = b.splat<int32_t>("i32", 0);
  const auto add_one = [&](LocalId n) { return b.point("stablehlo.add", {n, b.splat<int32_t>("i32", 1)}); };
  const auto out = b.loop(
      {zero, x}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", outer)); },
      [&](const auto& v) {
        const auto made = b.loop(
            {zero, v[1]}, [&](const auto& w) { return b.compare("LT", w[0], b.splat<int32_t>("i32", inner)); },
            [&](const auto& w) {
              return std::vector<LocalId>{add_one(w[0]), b.point("stablehlo.add", {w[1], w[1]})};
            });
        return std::vector<LocalId>{add_one(v[0]), made[1]};
      });
  b.result(out[1]);
  if (are_known) {
    const auto loop_of = [](LocalBlock& block) -> LocalOp& {
      return *std::find_if(block.ops.begin(), block.ops.end(),
                           [](const LocalOp& op) { return op.kind == LocalKind::kWhile; });
    };
    LocalOp& first = loop_of(b.program.body);
    first.trip_count = outer;
    loop_of(first.blocks[1]).trip_count = inner;
  }
  compile::PlanOptions options;
  options.small_whiles = small_whiles;
  options.unroll_whiles = false;  // they are short ones
  return compile::make_plan(b.finish(), options);
}

TEST(EngineProgress, known_number_of_steps_is_that_of_the_steps_that_run) {
  for (const bool small : {false, true}) {
    for (const int32_t outer : {0, 1, 7}) {
      for (const int32_t inner : {0, 3}) {
        const auto plan = loops(outer, inner, true, small);
        Bench bench;
        const auto out = bench.run(plan, {bench.shards<float>({{1, 2, 3, 4}})});
        EXPECT_EQ(plan->executed_steps, out.stats.steps) << outer << " times " << inner << (small ? ", small" : "");
      }
    }
  }
}

TEST(EngineProgress, number_of_steps_that_data_decides_is_not_told) {
  EXPECT_EQ(loops(7, 3, false, true)->executed_steps, -1);
  LocalBuilder b({4});
  nested_program(b, 5);
  EXPECT_EQ(plan_of(b)->executed_steps, -1);
}

TEST(EngineProgress, huge_loops_do_not_overflow) {
  LocalBuilder b({1});
  const LocalId x = b.argument("i32");
  const auto out = b.loop(
      {x}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 5)); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], v[0]})};
      });
  b.result(out[0]);
  for (LocalOp& op : b.program.body.ops) {
    if (op.kind == LocalKind::kWhile) op.trip_count = int64_t{1} << 61;
  }
  EXPECT_EQ(plan_of(b)->executed_steps, -1);
}

// Stopped once `steps` are executed.
device::RunProgress progress_at(const compile::PlanRef& plan, int64_t steps) {
  Bench bench;
  device::RunRequest request;
  request.plan = plan;
  request.arguments = {bench.shards<float>({{1, 2, 3, 4}})};
  std::atomic<bool> has_stopped{false};
  request.pause_before = [&](int64_t executed) { return executed >= steps && !has_stopped.exchange(true); };
  const auto pending = bench.start(std::move(request));
  EXPECT_TRUE(testing::eventually([&] { return pending->run->progress().state == device::RunState::kWaiting; }));
  const device::RunProgress out = pending->run->progress();
  pending->run->resume();
  pending->wait();
  EXPECT_FALSE(pending->run->progress().loop) << "it is over";
  return out;
}

TEST(EngineProgress, outermost_loop_is_told_with_its_iterations) {
  const auto plan = loops(7, 3, true, false);
  const device::RunProgress begin = progress_at(plan, 0);
  EXPECT_FALSE(begin.loop && begin.loop->iterations_done > 0);
  EXPECT_EQ(begin.steps_total, plan->executed_steps);
  const device::RunProgress half = progress_at(plan, plan->executed_steps / 2);
  ASSERT_TRUE(half.loop);
  EXPECT_EQ(half.loop->iterations_done, 3);
  EXPECT_EQ(half.loop->iterations, 7);
  EXPECT_NEAR(half.fraction().value(), 0.5, 0.05);
  EXPECT_FALSE(half.remaining()) << "too early to tell";
}

TEST(EngineProgress, nothing_is_invented_where_data_decides) {
  const auto plan = loops(7, 3, false, false);
  const device::RunProgress progress = progress_at(plan, 20);
  ASSERT_TRUE(progress.loop);
  EXPECT_GT(progress.loop->iterations_done, 0);
  EXPECT_FALSE(progress.loop->iterations);
  EXPECT_FALSE(progress.steps_total);
  EXPECT_FALSE(progress.fraction());
  EXPECT_FALSE(progress.remaining());
}

TEST(EngineProgress, remaining_time_follows_from_what_is_done) {
  device::RunProgress progress;
  progress.state = device::RunState::kRunning;
  progress.steps_done = 25;
  progress.steps_total = 100;
  progress.has_loops = true;
  progress.running_for = std::chrono::seconds(10);
  EXPECT_EQ(progress.remaining(), std::chrono::seconds(30));
  progress.steps_done = 101;
  EXPECT_FALSE(progress.fraction()) << "the total was wrong";
  progress.steps_done = 25;
  progress.has_loops = false;
  EXPECT_FALSE(progress.remaining()) << "steps outside of loops are not alike";
}

}  // namespace
}  // namespace meshd::test
