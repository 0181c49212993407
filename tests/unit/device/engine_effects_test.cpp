// Effects leave in order, once each, and a run waits for replies as data.
#include "tests/support/eventually.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

using Floats = std::vector<float>;

struct Seen {
  int32_t point;
  int64_t shard;
  int64_t device;
  int64_t visit;
  device::EffectKey key;
  std::vector<float> values;
};

// Notes what comes; results with the negated operand when asked for a result.
class Notebook final : public device::EffectSink {
 public:
  device::EffectResult emit(const device::EffectCall& call) override {
    if (pend_once && pending.insert({call.visit, call.shard}).second) {
      ++pauses;
      if (on_pending) on_pending();
      return device::EffectResult::pending();
    }
    Seen made{call.program_point, call.shard, call.device, call.visit, *call.key, {}};
    for (const device::EffectValue& value : call.operands) {
      std::vector<float> numbers(value.bytes.size() / 4);
      if (!numbers.empty()) std::memcpy(numbers.data(), value.bytes.data(), value.bytes.size());
      made.values.insert(made.values.end(), numbers.begin(), numbers.end());
    }
    std::vector<std::vector<std::byte>> results;
    for (size_t i = 0; i < call.results.size(); ++i) {
      std::vector<float> numbers = made.values;
      for (float& number : numbers) number = -number;
      results.push_back(bytes_of(numbers));
    }
    if (wrong_answer) results.clear();
    seen.push_back(std::move(made));
    return device::EffectResult::done(std::move(results));
  }
  bool pend_once = false;
  bool wrong_answer = false;
  std::function<void()> on_pending;
  std::set<std::pair<int64_t, int64_t>> pending;
  std::atomic<int> pauses{0};
  std::vector<Seen> seen;
};

// A loop of three iterations with an effect on every device, then one on the whole.
compile::PlanRef effects_plan(LocalBuilder& b) {
  const LocalId x = b.argument("4xf32", {{0}});
  const LocalId zero = b.splat<int32_t>("i32", 0);
  const auto out = b.loop(
      {zero, x}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 3)); },
      [&](const auto& v) {
        const LocalId answer = b.like(v[1]);
        b.effect({v[1]}, {answer}, true);
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}),
                                    b.point("stablehlo.add", {answer, answer})};
      });
  b.effect({b.reshard(out[1], {{}})}, {}, false);
  b.result(out[1]);
  return plan_of(b);
}

// A run of effects_plan over four devices, with `sink`.
device::RunRequest effects_run(Bench& bench, Notebook& sink) {
  LocalBuilder b({4});
  device::RunRequest request;
  request.plan = effects_plan(b);
  request.arguments = {bench.shards<float>({{1}, {2}, {3}, {4}})};
  request.effects = &sink;
  return request;
}

TEST(EngineEffects, each_point_in_turn_and_by_ascending_shard) {
  Bench bench;
  Notebook sink;
  device::RunRequest request = effects_run(bench, sink);
  request.devices = {7, 5, 3, 1};
  const auto out = bench.start(std::move(request))->wait();
  EXPECT_EQ(output<float>(out), (std::vector<Floats>{{-8}, {-16}, {-24}, {-32}}));
  ASSERT_EQ(sink.seen.size(), 13U);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(sink.seen[i].point, 0);
    EXPECT_EQ(sink.seen[i].shard, static_cast<int64_t>(i % 4));
    EXPECT_EQ(sink.seen[i].device, static_cast<int64_t>(7 - 2 * (i % 4)));
  }
  for (size_t i = 0; i + 1 < sink.seen.size(); ++i) EXPECT_LT(sink.seen[i].key, sink.seen[i + 1].key);
  EXPECT_EQ(sink.seen[12].values, (Floats{-8, -16, -24, -32}));
}

TEST(EngineEffects, run_waits_for_each_answer_and_gives_the_same) {
  Bench bench;
  Notebook sink;
  sink.pend_once = true;
  const auto pending = bench.start(effects_run(bench, sink));
  for (int i = 1; i <= 13; ++i) {
    ASSERT_TRUE(testing::eventually([&] { return sink.pauses.load() >= i; }));
    EXPECT_FALSE(pending->is_done());
    pending->run->resume();
  }
  EXPECT_EQ(output<float>(pending->wait()), (std::vector<Floats>{{-8}, {-16}, {-24}, {-32}}));
  EXPECT_EQ(sink.seen.size(), 13U);
}

TEST(EngineEffects, resumed_before_it_has_stopped_goes_on) {
  Bench bench;
  Notebook sink;
  sink.pend_once = true;
  std::shared_ptr<device::Run> run;
  std::promise<void> known;
  std::shared_future<void> is_known = known.get_future().share();
  sink.on_pending = [&] {
    is_known.wait();
    run->resume();  // the answer is there before emit() returns
  };
  const auto pending = bench.start(effects_run(bench, sink));
  run = pending->run;
  known.set_value();
  EXPECT_EQ(output<float>(pending->wait()), (std::vector<Floats>{{-8}, {-16}, {-24}, {-32}}));
}

TEST(EngineEffects, waiting_run_can_be_cancelled) {
  Bench bench;
  Notebook sink;
  sink.pend_once = true;
  device::RunRequest request = effects_run(bench, sink);
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
  const auto out = bench.start(std::move(request))->wait();
  ASSERT_TRUE(out.error.has_value());
  EXPECT_EQ(out.error->code().word(), "deadline_exceeded");
  EXPECT_EQ(bench.engine.stats().running, 0);
}

TEST(EngineEffects, answer_of_the_wrong_form_ends_the_run) {
  Bench bench;
  Notebook sink;
  sink.wrong_answer = true;
  const auto out = bench.start(effects_run(bench, sink))->wait();
  ASSERT_TRUE(out.error.has_value());
  EXPECT_EQ(out.error->code().word(), "program_failed");
}

TEST(EngineEffects, effect_with_unused_result_happens) {
  LocalBuilder b({1});
  const LocalId x = b.argument("f32");
  b.effect({x}, {b.like(x)}, false);
  b.result(x);
  Bench bench;
  Notebook sink;
  device::RunRequest request;
  request.plan = plan_of(b);
  request.arguments = {bench.shards<float>({{5}})};
  request.effects = &sink;
  ASSERT_TRUE(bench.start(std::move(request))->wait().ok());
  EXPECT_EQ(sink.seen.size(), 1U);
}

TEST(EngineEffects, devices_that_left_a_loop_are_silent) {
  LocalBuilder b({2});
  const LocalId limit = b.argument("2xi32", {{0}});
  const LocalId most = b.value("i32", {}, 0b1);
  b.op("stablehlo.reshape", {limit}, {most});
  const LocalId start = b.reshard(b.splat<int32_t>("i32", 0), {}, 0b1);
  const auto out = b.loop(
      {start}, [&](const auto& v) { return b.compare("LT", v[0], most); },
      [&](const auto& v) {
        b.effect({v[0]}, {}, true);
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)})};
      });
  b.result(out[0]);
  Bench bench;
  Notebook sink;
  device::RunRequest request;
  request.plan = plan_of(b);
  request.arguments = {bench.shards<int32_t>({{1}, {3}})};
  request.effects = &sink;
  ASSERT_TRUE(bench.start(std::move(request))->wait().ok());
  std::vector<int64_t> shards;
  for (const Seen& seen : sink.seen) shards.push_back(seen.shard);
  EXPECT_EQ(shards, (std::vector<int64_t>{0, 1, 1, 1}));
}

}  // namespace
}  // namespace meshd::test
