// Loops and branches: stopping at every step, devices that disagree, budgets and cancelling.
#include "tests/support/eventually.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

TEST(EngineControl, nested_program_computes) {
  // Without the engine: the same in plain C++.
  std::vector<Floats> x = counted_shards(4, 8);
  Floats whole;
  for (const Floats& shard : x) whole.insert(whole.end(), shard.begin(), shard.end());
  for (int iteration = 0; iteration < 3; ++iteration) {
    if (iteration % 2 == 0) {
      for (float& value : whole) value += value;
    }
    for (int inner = 0; inner < 2; ++inner) {
      Floats next(whole.size());
      for (size_t row = 0; row < 8; ++row) {
        for (size_t column = 0; column < 4; ++column)
          next[row * 4 + column] = whole[(7 - row) * 4 + column] - whole[row * 4 + column];
      }
      whole = next;
    }
  }
  LocalBuilder b({4});
  nested_program(b, 3);
  Bench bench;
  const auto out = bench.run(plan_of(b), {bench.shards<float>(x)});
  Floats got;
  for (const Floats& shard : output<float>(out, 0)) got.insert(got.end(), shard.begin(), shard.end());
  EXPECT_EQ(got, whole);
}

TEST(EngineControl, run_stopped_at_every_step_gives_the_same) {
  LocalBuilder b({4});
  nested_program(b, 5);
  const auto plan = plan_of(b);
  Bench bench;
  const auto plain = bench.run(plan, {bench.shards<float>(counted_shards(4, 8))});
  const auto expected = all_bytes(plain);
  ASSERT_GT(plain.stats.steps, 60);
  // Once at each place, each time in a run of its own.
  int stops = 0;
  for (int64_t place = 0; place < plain.stats.steps; ++place) {
    device::RunRequest request;
    request.plan = plan;
    request.arguments = {bench.shards<float>(counted_shards(4, 8))};
    std::atomic<bool> has_stopped{false};
    request.pause_before = [&](int64_t executed) { return executed == place && !has_stopped.exchange(true); };
    const auto pending = bench.start(std::move(request));
    ASSERT_TRUE(testing::eventually([&] { return has_stopped.load() || pending->is_done(); }));
    if (has_stopped.load()) {
      ++stops;
      EXPECT_FALSE(pending->is_done());
      pending->run->resume();
    }
    EXPECT_EQ(all_bytes(pending->wait()), expected) << "stopped at " << place;
  }
  EXPECT_GT(stops, 60);  // iterations of a loop count as steps, too, but nothing begins there
}

TEST(EngineControl, run_stopped_before_all_steps_gives_the_same) {
  LocalBuilder b({4});
  nested_program(b, 5);
  const auto plan = plan_of(b);
  Bench bench;
  const auto expected = all_bytes(bench.run(plan, {bench.shards<float>(counted_shards(4, 8))}));
  device::RunRequest request;
  request.plan = plan;
  request.arguments = {bench.shards<float>(counted_shards(4, 8))};
  std::atomic<int64_t> stops{0};
  request.pause_before = [&](int64_t) {
    stops.fetch_add(1);
    return true;
  };
  const auto pending = bench.start(std::move(request));
  ASSERT_TRUE(testing::eventually([&] {
    pending->run->resume();
    return pending->is_done();
  }));
  EXPECT_EQ(all_bytes(pending->wait()), expected);
  EXPECT_GT(stops.load(), 60);
}

TEST(EngineControl, devices_leave_a_loop_one_by_one) {
  LocalBuilder b({4});
  diverging_program(b);
  const auto plan = plan_of(b);
  Bench bench;
  const auto out = bench.run(plan, {bench.shards<float>({{1}, {1}, {1}, {1}})});
  EXPECT_EQ(output<int32_t>(out, 0), (std::vector<Ints>{{2}, {3}, {4}, {5}}));
  EXPECT_EQ(output<float>(out, 1), (std::vector<Floats>{{4}, {8}, {16}, {32}}));
}

TEST(EngineControl, values_under_a_varying_condition_vary_with_it) {
  // The counter is declared alike on all positions; it must not be, because they leave at different iterations.
  LocalBuilder b({2});
  const LocalId limit = b.argument("2xi32", {{0}});
  const LocalId most = b.value("i32", {}, 0b1);
  b.op("stablehlo.reshape", {limit}, {most});
  const LocalId zero = b.splat<int32_t>("i32", 0);
  const auto out = b.loop(
      {zero, zero}, [&](const auto& v) { return b.compare("LT", v[1], most); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 10)}),
                                    b.point("stablehlo.add", {v[1], b.splat<int32_t>("i32", 1)})};
      });
  // Compare gives what its first operand is like; here the predicate varies with its second.
  auto& loop_op = b.program.body.ops.back();
  b.program.values[static_cast<size_t>(loop_op.blocks[0].results[0])].type.varies = 0b1;
  b.result(out[0]);
  const auto plan = plan_of(b);
  ASSERT_EQ(plan->table(plan->results[0].table).count(), 2);
  Bench bench;
  EXPECT_EQ(output<int32_t>(bench.run(plan, {bench.shards<int32_t>({{3}, {5}})})), (std::vector<Ints>{{30}, {50}}));
}

TEST(EngineControl, devices_take_different_branches) {
  LocalBuilder b({4});
  const LocalId x = b.argument("4xf32", {{0}});
  const LocalId choice = b.argument("4xi32", {{0}});
  const LocalId index = b.value("i32", {}, 0b1);
  b.op("stablehlo.reshape", {choice}, {index});
  const auto out = b.branch(index, {[&] { return std::vector<LocalId>{b.point("stablehlo.negate", {x})}; },
                                    [&] { return std::vector<LocalId>{x}; },
                                    [&] {
                                      return std::vector<LocalId>{b.point("stablehlo.add", {x, x})};
                                    }});
  b.result(out[0]);
  Bench bench;
  const auto ran =
      bench.run(plan_of(b), {bench.shards<float>({{1}, {2}, {3}, {4}}), bench.shards<int32_t>({{2}, {0}, {1}, {-7}})});
  EXPECT_EQ(output<float>(ran), (std::vector<Floats>{{2}, {-2}, {3}, {8}}));  // out of range takes the last
}

TEST(EngineControl, boolean_branch_takes_block_zero_for_true) {
  LocalBuilder b({1});
  const LocalId x = b.argument("f32");
  const LocalId yes = b.argument("i1");
  const auto out = b.branch(yes, {[&] { return std::vector<LocalId>{b.point("stablehlo.negate", {x})}; },
                                  [&] {
                                    return std::vector<LocalId>{b.point("stablehlo.add", {x, x})};
                                  }});
  b.result(out[0]);
  const auto plan = plan_of(b);
  Bench bench;
  EXPECT_EQ(output<float>(bench.run(plan, {bench.shards<float>({{3}}), bench.shards<uint8_t>({{1}})}))[0][0], -3);
  EXPECT_EQ(output<float>(bench.run(plan, {bench.shards<float>({{3}}), bench.shards<uint8_t>({{0}})}))[0][0], 6);
}

TEST(EngineControl, collective_that_only_some_reach_ends_the_run) {
  LocalBuilder b({2});
  const LocalId x = b.argument("1xf32", {}, 0b1);
  const LocalId choice = b.argument("2xi32", {{0}});
  const LocalId index = b.value("i32", {}, 0b1);
  b.op("stablehlo.reshape", {choice}, {index});
  const auto out =
      b.branch(index, {[&] {
                         const LocalId sum = b.reduce_shards(x, 0b1);
                         return std::vector<LocalId>{b.reshard(sum, {{}}, 0b1)};
                       },
                       [&] { return std::vector<LocalId>{b.reshard(b.splat<float>("1xf32", 7), {{}}, 0b1)}; }});
  b.result(out[0]);
  const auto plan = plan_of(b);
  Bench bench;
  const auto together = bench.run(plan, {bench.shards<float>({{1}, {2}}), bench.shards<int32_t>({{0}, {0}})});
  EXPECT_EQ(output<float>(together), (std::vector<Floats>{{3}, {3}}));
  const auto apart = bench.run(plan, {bench.shards<float>({{1}, {2}}), bench.shards<int32_t>({{0}, {1}})});
  ASSERT_TRUE(apart.error.has_value());
  EXPECT_EQ(apart.error->code().word(), "program_failed");
  EXPECT_NE(apart.error->detail().find("line 2"), std::string::npos) << apart.error->detail();
}

compile::PlanRef endless_plan() {
  LocalBuilder b({1});
  const LocalId x = b.argument("f32");
  const auto out = b.loop(
      {x}, [&](const auto&) { return b.splat<uint8_t>("i1", 1); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], v[0]})};
      });
  b.result(out[0]);
  return plan_of(b);
}

// A loop without a step of its own: nothing changes, nothing ends.
compile::PlanRef empty_loop_plan() {
  LocalBuilder b({1});
  const LocalId x = b.argument("f32");
  const LocalId yes = b.splat<uint8_t>("i1", 1);
  const auto out = b.loop(
      {x}, [&](const auto&) { return yes; }, [&](const auto& v) { return v; });
  b.result(out[0]);
  // Kept although its result is known: an effect is behind it that never comes.
  b.effect({out[0]}, {}, false);
  return plan_of(b);
}

TEST(EngineControl, endless_run_can_be_cancelled) {
  for (const auto& plan : {endless_plan(), empty_loop_plan()}) {
    Bench bench;
    device::RunRequest request;
    request.plan = plan;
    request.arguments = {bench.shards<float>({{1}})};
    const auto pending = bench.start(std::move(request));
    ASSERT_TRUE(testing::eventually([&] { return pending->run->progress().state == device::RunState::kRunning; }));
    pending->run->cancel(core::Error("cancelled", "enough"));
    const auto out = pending->wait();
    ASSERT_TRUE(out.error.has_value());
    EXPECT_EQ(out.error->code().word(), "cancelled");
  }
}

TEST(EngineControl, run_past_its_deadline_ends) {
  Bench bench;
  device::RunRequest request;
  request.plan = endless_plan();
  request.arguments = {bench.shards<float>({{1}})};
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  const auto out = bench.start(std::move(request))->wait();
  ASSERT_TRUE(out.error.has_value());
  EXPECT_EQ(out.error->code().word(), "deadline_exceeded");
}

TEST(EngineControl, budget_of_steps_ends_the_run) {
  for (const auto& plan : {endless_plan(), empty_loop_plan()}) {
    Bench bench;
    device::RunRequest request;
    request.plan = plan;
    request.arguments = {bench.shards<float>({{1}})};
    request.step_budget = 1000;
    const auto out = bench.start(std::move(request))->wait();
    ASSERT_TRUE(out.error.has_value());
    EXPECT_EQ(out.error->code().word(), "budget_exceeded");
    EXPECT_NEAR(static_cast<double>(out.stats.steps), 1000, 1);
  }
}

TEST(EngineControl, progress_tells_step_and_line) {
  Bench bench;
  device::RunRequest request;
  request.plan = endless_plan();
  request.arguments = {bench.shards<float>({{1}})};
  const auto pending = bench.start(std::move(request));
  ASSERT_TRUE(testing::eventually([&] { return pending->run->progress().steps_done >= 100; }));
  const device::RunProgress progress = pending->run->progress();
  EXPECT_FALSE(progress.op.empty());
  EXPECT_GT(progress.line, 0);
  pending->run->cancel(core::Error("cancelled", "enough"));
  pending->wait();
  EXPECT_EQ(pending->run->progress().state, device::RunState::kDone);
}

TEST(EngineControl, long_runs_let_others_have_the_thread) {
  Bench bench({.device_count = 2, .threads = 1});
  device::RunRequest endless;
  endless.plan = endless_plan();
  endless.arguments = {bench.shards<float>({{1}})};
  endless.devices = {0};
  const auto pending = bench.start(std::move(endless));
  LocalBuilder b({1});
  b.result(b.point("stablehlo.negate", {b.argument("f32")}));
  device::RunRequest small;
  small.plan = plan_of(b);
  small.arguments = {bench.shards<float>({{1}})};
  small.devices = {1};
  EXPECT_EQ(output<float>(bench.start(std::move(small))->wait())[0][0], -1);
  EXPECT_FALSE(pending->is_done());
  pending->run->cancel(core::Error("cancelled", "enough"));
  pending->wait();
}

}  // namespace
}  // namespace meshd::test
