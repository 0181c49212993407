// Runs as a whole: many devices, bits that do not depend on threads, steps shared between threads, errors.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

using Floats = std::vector<float>;

TEST(EngineRun, sixty_four_devices_run_on_two_threads) {
  LocalBuilder b({8, 8});
  const LocalId x = b.argument("64x4xf32", {{0, 1}});
  const LocalId e = b.point("stablehlo.multiply", {x, x});
  b.result(b.reduce_shards(b.reshard(e, {{0, 1}, {}}), 0b11));
  b.result(b.reshard(e, {{1}, {}}));
  Bench bench({.device_count = 64, .threads = 2});
  const auto out = bench.run(plan_of(b), {bench.shards<float>(counted_shards(64, 4))});
  float expected = 0;
  for (int i = 0; i < 64; ++i) expected += static_cast<float>((4 * i + 1) * (4 * i + 1));
  EXPECT_EQ(output<float>(out, 0)[0][0], expected);
  EXPECT_EQ(out.outputs[1].size(), 8U);
}

// A program whose steps are worth sharing, with a float sum in it.
compile::PlanRef large_plan(int threads) {
  LocalBuilder b({4});
  const LocalId x = b.argument("400000xf32", {{0}});
  const LocalId e = b.point("stablehlo.exponential", {b.point("stablehlo.tanh", {x})});
  const LocalId whole = b.reshard(e, {{}});
  b.result(whole);
  const LocalId part = b.argument("300000xf32", {}, 0b1);
  b.result(b.reduce_shards(part, 0b1));
  return plan_of(b, threads);
}

TEST(EngineRun, bits_do_not_depend_on_threads) {
  std::vector<std::vector<std::byte>> first;
  for (const int threads : {1, 2, 4}) {
    Bench bench({.device_count = 4, .threads = threads});
    const auto plan = large_plan(threads);
    std::vector<Floats> x(4, Floats(100000));
    std::vector<Floats> part(4, Floats(300000));
    for (size_t s = 0; s < 4; ++s) {
      for (size_t i = 0; i < x[s].size(); ++i) x[s][i] = static_cast<float>(i % 977) * 0.01F - static_cast<float>(s);
      for (size_t i = 0; i < part[s].size(); ++i) part[s][i] = 1.0F / static_cast<float>(i + s + 1);
    }
    const auto out = bench.run(plan, {bench.shards<float>(x), bench.shards<float>(part)});
    ASSERT_TRUE(out.ok());
    std::vector<std::vector<std::byte>> bits;
    for (const auto& result : out.outputs) {
      for (const auto& shard : result) bits.emplace_back(shard->bytes().begin(), shard->bytes().end());
    }
    if (first.empty()) first = bits;
    EXPECT_EQ(bits, first) << threads << " threads";
    if (threads > 1) {
      EXPECT_GT(out.stats.handoffs, 0);
    }
  }
}

// The hint is one: runs may come at once, late or not at all, and from several threads.
TEST(EngineRun, expected_runs_come_or_do_not) {
  Bench bench({.device_count = 4, .threads = 2});
  const auto plan = large_plan(2);
  const std::vector<Floats> x(4, Floats(100000, 0.5F));
  const std::vector<Floats> part(4, Floats(300000, 0.25F));
  const auto alone = all_bytes(bench.run(plan, {bench.shards<float>(x), bench.shards<float>(part)}));
  std::atomic<bool> is_over{false};
  std::thread hints([&] {
    while (!is_over) {
      bench.engine.expect_run();
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 20; ++i) {
    bench.engine.expect_run();
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    EXPECT_EQ(all_bytes(bench.run(plan, {bench.shards<float>(x), bench.shards<float>(part)})), alone);
  }
  is_over = true;
  hints.join();
}

// Real transforms there and back: each has a barrier between its dimensions, and the way back a workspace.
compile::PlanRef transform_plan(int threads) {
  LocalBuilder b({3});
  const LocalId x = b.argument("3x256x200xf32", {{0}});
  const auto fft = [&](LocalId from, std::string_view text, const std::string& kind) {
    const LocalId out = b.value(text, {{0}});
    b.op("stablehlo.fft", {from}, {out},
         {{"fft_type", attribute(ir::EnumAttr{"fft_type", kind})},
          {"fft_length", attribute(ir::IntArrayAttr{{256, 200}, "i64"})}});
    return out;
  };
  b.result(fft(fft(x, "3x256x101xcomplex<f32>", "RFFT"), "3x256x200xf32", "IRFFT"));
  return plan_of(b, threads);
}

TEST(EngineRun, work_items_behind_a_barrier_see_what_those_before_it_made) {
  std::vector<Floats> x(3, Floats(256 * 200));
  for (size_t s = 0; s < 3; ++s) {
    for (size_t i = 0; i < x[s].size(); ++i) x[s][i] = static_cast<float>((i * 37 + s) % 977) - 400.0F;
  }
  std::vector<Floats> first;
  for (const int threads : {1, 2, 3, 8}) {
    Bench bench({.device_count = 3, .threads = threads});
    const auto plan = transform_plan(threads);
    EXPECT_GT(plan->workspace_bytes, 0);
    for (int round = 0; round < 20; ++round) {
      const auto out = bench.run(plan, {bench.shards<float>(x)});
      ASSERT_TRUE(out.ok());
      const std::vector<Floats> got = output<float>(out);
      if (first.empty()) first = got;
      ASSERT_EQ(got, first) << threads << " threads";
      if (threads > 1) {
        EXPECT_GT(out.stats.kernel_calls, 2 * 3);
      }
    }
  }
  for (size_t s = 0; s < 3; ++s) {
    for (size_t i = 0; i < x[s].size(); ++i) ASSERT_NEAR(first[s][i], x[s][i], 1e-2);
  }
}

TEST(EngineRun, small_run_stays_on_the_thread_that_lends_itself) {
  LocalBuilder b({8});
  const LocalId x = b.argument("8xf32", {{0}});
  b.result(b.point("stablehlo.negate", {x}));
  Bench bench;
  device::RunRequest request;
  request.plan = plan_of(b);
  request.arguments = {bench.shards<float>(counted_shards(8, 1))};
  request.on_callers_thread = true;
  std::thread::id ran_on;
  bool done = false;
  bench.engine.submit(std::move(request), [&](const device::RunOutcome& outcome) {
    ran_on = std::this_thread::get_id();
    done = outcome.ok();
    EXPECT_EQ(outcome.stats.handoffs, 0);
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(EngineRun, wrong_arguments_are_refused) {
  LocalBuilder b({2});
  const LocalId x = b.argument("4xf32", {{0}});
  b.result(b.point("stablehlo.negate", {x}));
  const auto plan = plan_of(b);
  Bench bench({.device_count = 2, .threads = 1});
  const auto error = [&](std::vector<device::RunArgument> arguments, std::vector<int64_t> devices) {
    device::RunRequest request;
    request.plan = plan;
    request.arguments = std::move(arguments);
    request.devices = std::move(devices);
    return error_of([&] { bench.start(std::move(request)); });
  };
  EXPECT_NE(error({}, {}).find("takes 1 arguments, got 0"), std::string::npos);
  EXPECT_NE(error({bench.shards<float>({{1, 2}})}, {}).find("has 2 shards, got 1"), std::string::npos);
  EXPECT_NE(error({bench.shards<float>({{1, 2}, {3}})}, {}).find("have 8 bytes, got 4"), std::string::npos);
  EXPECT_NE(error({bench.shards<float>({{1, 2}, {3, 4}})}, {0, 7}).find("too_few_devices"), std::string::npos);
  EXPECT_NE(error({bench.shards<float>({{1, 2}, {3, 4}})}, {0}).find("runs on 2 devices, 1 are given"),
            std::string::npos);
}

TEST(EngineRun, profile_counts_every_step) {
  LocalBuilder b({4});
  nested_program(b, 4);
  const auto plan = plan_of(b);
  Bench bench;
  device::RunRequest request;
  request.plan = plan;
  request.arguments = {bench.shards<float>(counted_shards(4, 8))};
  request.profile = true;
  const auto out = bench.start(std::move(request))->wait();
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE(out.stats.profile);
  const device::RunProfile& profile = *out.stats.profile;
  EXPECT_EQ(static_cast<int64_t>(profile.steps.size()), plan->step_count);
  int64_t most = 0;
  int64_t executions = 0;
  for (const device::StepStats& step : profile.steps) {
    most = std::max(most, step.count);
    executions += step.count;
  }
  EXPECT_EQ(most, 12) << "the inner condition runs 3 times in each of 4 iterations";
  EXPECT_EQ(executions + 4 + 8, out.stats.steps) << "an iteration counts as a step against budgets";
  // Executions follow each other or are inside of one another: the last to end is the outermost loop, or behind it.
  ASSERT_EQ(static_cast<int64_t>(profile.events.size()), executions);
  auto end = std::chrono::nanoseconds(0);
  for (const device::StepEvent& event : profile.events) {
    EXPECT_GE(event.start.count(), 0);
    EXPECT_GE(event.start + event.time, end);
    end = event.start + event.time;
  }
}

TEST(EngineRun, engine_counts_runs_and_busy_devices) {
  LocalBuilder b({2});
  const LocalId x = b.argument("4xf32", {{0}});
  b.result(b.point("stablehlo.negate", {x}));
  Bench bench({.device_count = 4, .threads = 1});
  device::RunRequest request;
  request.plan = plan_of(b);
  request.arguments = {bench.shards<float>({{1, 2}, {3, 4}})};
  request.devices = {3, 1};
  ASSERT_TRUE(bench.start(std::move(request))->wait().ok());
  const device::EngineStats stats = bench.engine.stats();
  EXPECT_EQ(stats.runs_done, 1);
  EXPECT_EQ(stats.running, 0);
  EXPECT_GT(stats.device_busy[3].count() + stats.device_busy[1].count(), 0);
  EXPECT_EQ(stats.device_busy[0].count(), 0);
}

}  // namespace
}  // namespace meshd::test
