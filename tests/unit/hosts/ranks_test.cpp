// Several ranks in one process, over a network that delivers in a random order: programs give the bits, the effects and
// the errors of one process.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <thread>

#include "service/device/local_arena.h"
#include "tests/support/ranks.h"

namespace meshd::testing {
namespace {

using namespace hosts;

// Each device's loop runs as often as its number and one; every turn calls back.
std::string diverging(bool answers) {
  const std::string call =
      answers
          ? R"(%u = stablehlo.custom_call @xla_ffi_python_cpu_callback(%v) {has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (tensor<1xf32>) -> tensor<1xf32>)"
          : R"(stablehlo.custom_call @xla_ffi_python_cpu_callback(%v) {has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (tensor<1xf32>) -> ()
      %u = stablehlo.add %v, %v : tensor<1xf32>)";
  return R"(sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<1xf32>) {
    %p = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %m = stablehlo.add %n, %one : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%i = %z, %v = %b) : tensor<i32>, tensor<1xf32>
    cond {
      %t = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      )" +
         call + R"(
      stablehlo.return %j, %u : tensor<i32>, tensor<1xf32>
    }
    sdy.return %w#1 : tensor<1xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
})";
}

/// Writes down what it is called with; answers with twice the operand, at the second time it is asked.
class Notes final : public device::EffectSink {
 public:
  device::EffectResult emit(const device::EffectCall& call) override {
    const std::lock_guard held(mutex);
    if (is_busy) ADD_FAILURE() << "two effects at once";
    if (fails_at == call.visit) throw core::Error("memory_full", "no room for effect " + std::to_string(call.visit));
    float value = 0;
    std::memcpy(&value, call.operands[0].bytes.data(), sizeof(value));
    if (!call.results.empty() && asked != call.visit) {
      asked = call.visit;
      there.notify_all();
      return device::EffectResult::pending();
    }
    std::string line = std::to_string(call.visit) + " on " + std::to_string(call.device) + " shard " +
                       std::to_string(call.shard) + " " + std::to_string(value) + " at";
    for (const int64_t step : call.key->path) line += " " + std::to_string(step);
    lines.push_back(std::move(line));
    if (call.results.empty()) return device::EffectResult::done();
    value *= 2;
    std::vector<std::byte> bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    return device::EffectResult::done({bytes});
  }
  /// Resumes the run for each question, until it is over.
  void serve(Pending& pending) {
    int64_t served = -1;
    while (true) {
      {
        std::unique_lock held(mutex);
        there.wait_for(held, std::chrono::milliseconds(5), [&] { return asked != served; });
        served = asked;
      }
      pending.run->resume();
      const std::lock_guard held(pending.mutex);
      if (pending.outcome) return;
    }
  }

  std::mutex mutex;
  std::condition_variable there;
  std::vector<std::string> lines;
  int64_t asked = -1;
  int64_t fails_at = -1;
  bool is_busy = false;
};

TEST(Ranks, programs_have_the_bits_of_one_process) {
  const compile::LoweredRef program = lowered(layers());
  OneProcess one;
  const device::RunOutcome expected = start(one.engine, request_of(program))->wait();
  const auto bytes = bytes_of(expected);
  for (const int count : {2, 4, 8}) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      Ranks ranks(count, seed);
      for (const std::vector<int64_t>& devices :
           {std::vector<int64_t>{}, std::vector<int64_t>{7, 2, 5, 0, 1, 6, 3, 4}}) {
        const device::RunOutcome outcome = start(*ranks.coordinator, request_of(program, devices))->wait();
        EXPECT_EQ(bytes_of(outcome), bytes) << count << " ranks";
        EXPECT_EQ(outcome.stats.steps, expected.stats.steps);
        EXPECT_EQ(outcome.stats.operations, expected.stats.operations);
        EXPECT_GT(outcome.stats.messages, 0);
      }
    }
  }
}

// A manual computation that calls what differs between devices replicated, one inside of another, meshes that list
// devices in another order, and a mesh of some of them.
const std::vector<std::string> kReadElsewhere = {std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %0:2 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y"} (%b: tensor<2x3xf32>) {
    %1 = stablehlo.add %b, %b : tensor<2x3xf32>
    %2 = stablehlo.concatenate %1, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
    sdy.return %1, %2 : tensor<2x3xf32>, tensor<2x6xf32>
  } : (tensor<8x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
  return %0#0, %0#1 : tensor<2x6xf32>, tensor<2x6xf32>
})",
                                                 std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"y"}, {}]>] manual_axes={"y"} (%b: tensor<4x6xf32>) {
    %1 = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%c: tensor<1x6xf32>) {
      %2 = stablehlo.tanh %c : tensor<1x6xf32>
      sdy.return %2 : tensor<1x6xf32>
    } : (tensor<4x6xf32>) -> tensor<1x6xf32>
    %3 = stablehlo.concatenate %1, %1, dim = 0 : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
    sdy.return %3 : tensor<2x6xf32>
  } : (tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
})",
                                                 R"(sdy.mesh @near = <["x"=8]>
sdy.mesh @far = <["x"=8], device_ids=[7, 5, 6, 4, 0, 1, 3, 2]>
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@near, [{"x"}, {}]>})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@far, [{"x"}, {}]>}, tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@near, [{"x"}, {}]>}) {
  %0 = stablehlo.add %a, %a : tensor<8x6xf32>
  return %0, %0 : tensor<8x6xf32>, tensor<8x6xf32>
})",
                                                 R"(sdy.mesh @few = <["x"=2], device_ids=[2, 3]>
sdy.mesh @all = <["x"=8]>
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@few, [{}, {}]>})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@all, [{}, {}]>}) {
  %0 = stablehlo.add %a, %a : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
})"};

TEST(Ranks, shards_of_other_devices_are_sent_to_who_reads_them) {
  OneProcess one;
  for (const std::string& text : kReadElsewhere) {
    const compile::LoweredRef alone = lowered(text, {}, true);
    EXPECT_TRUE(alone->plan->shares_between_devices) << text;
    const auto expected = bytes_of(start(one.engine, request_of(alone))->wait());
    const compile::LoweredRef program = lowered(text);
    EXPECT_FALSE(program->plan->shares_between_devices) << text;
    EXPECT_EQ(bytes_of(start(one.engine, request_of(program))->wait()), expected) << text;
    for (const int count : {2, 4, 8}) {
      Ranks ranks(count, static_cast<uint32_t>(count));
      EXPECT_EQ(bytes_of(start(*ranks.coordinator, request_of(program))->wait()), expected)
          << count << " ranks " << text;
    }
  }
}

TEST(Ranks, large_reductions_are_made_in_parts_and_have_the_bits_of_one_process) {
  // 3 MiB on each device, whose sum all need, and 1.5 MiB that half of them do.
  const compile::LoweredRef program = lowered(std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x786432xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
                %b: tensor<4x786432xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<786432xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, tensor<786432xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x786432xf32>, tensor<f32>) -> tensor<786432xf32>
  %1 = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x786432xf32>, tensor<f32>) -> tensor<786432xf32>
  return %0, %1 : tensor<786432xf32>, tensor<786432xf32>
})");
  OneProcess one;
  const auto expected = bytes_of(start(one.engine, request_of(program))->wait());
  for (const int count : {2, 4, 8}) {
    Ranks ranks(count, static_cast<uint32_t>(count));
    for (const std::vector<int64_t>& devices : {std::vector<int64_t>{}, std::vector<int64_t>{7, 2, 5, 0, 1, 6, 3, 4}}) {
      const device::RunOutcome outcome = start(*ranks.coordinator, request_of(program, devices))->wait();
      EXPECT_EQ(bytes_of(outcome) == expected, true) << count << " ranks";
    }
  }
}

TEST(Ranks, each_rank_has_workspaces_of_its_own_shards) {
  const compile::LoweredRef program = lowered(std::string(kMesh8) + R"(
func.func @main(%a: tensor<16x128x65xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}, {}]>})
    -> (tensor<16x128x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}, {}]>}) {
  %0 = stablehlo.fft %a, type = IRFFT, length = [128, 128] : (tensor<16x128x65xcomplex<f32>>) -> tensor<16x128x128xf32>
  return %0 : tensor<16x128x128xf32>
})");
  ASSERT_GT(program->plan->workspace_bytes, 0);
  OneProcess one;
  const auto expected = bytes_of(start(one.engine, request_of(program))->wait());
  device::Ownership owners{.rank_of_device = {0, 0, 0, 0, 1, 1, 1, 1}, .rank = 1, .is_alone = false, .is_member = true};
  EXPECT_EQ(device::local_arena(*program->plan, owners).scratch_bytes,
            program->plan->memory.scratch - 4 * program->plan->workspace_bytes);
  for (const int count : {2, 4, 8}) {
    Ranks ranks(count, static_cast<uint32_t>(count));
    for (const std::vector<int64_t>& devices : {std::vector<int64_t>{}, std::vector<int64_t>{7, 2, 5, 0, 1, 6, 3, 4}})
      EXPECT_EQ(bytes_of(start(*ranks.coordinator, request_of(program, devices))->wait()), expected)
          << count << " ranks";
  }
}

TEST(Ranks, large_blocks_reach_ranks_that_are_late) {
  // Blocks of 1 MiB, and whole shards of 4 MiB; a rank that has sent them has nothing more to do.
  const compile::LoweredRef program = lowered(R"(sdy.mesh @mesh = <["x"=4, "y"=2]>
sdy.mesh @far = <["x"=4, "y"=2], device_ids=[7, 5, 6, 4, 0, 1, 3, 2]>
func.func @main(%a: tensor<2048x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<2048x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, tensor<2048x2048xf32> {sdy.sharding = #sdy.sharding<@far, [{"x"}, {}]>}) {
  return %a, %a : tensor<2048x2048xf32>, tensor<2048x2048xf32>
})");
  OneProcess one;
  const auto expected = bytes_of(start(one.engine, request_of(program))->wait());
  for (const int count : {2, 4, 8}) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      Ranks ranks(count, seed);
      const device::RunOutcome outcome = start(*ranks.coordinator, request_of(program))->wait();
      EXPECT_EQ(bytes_of(outcome) == expected, true) << count << " ranks";
    }
  }
}

TEST(Ranks, cancelled_run_leaves_no_large_message_behind) {
  const compile::LoweredRef program = lowered(std::string(kMesh8) + R"(
func.func @main(%a: tensor<8x524288xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<524288xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x524288xf32>, tensor<f32>) -> tensor<524288xf32>
  return %0 : tensor<524288xf32>
})");
  Ranks ranks(4);
  for (int i = 0; i < 8; ++i) {
    const auto pending = start(*ranks.coordinator, request_of(program));
    for (int j = 0; j < i * 50; ++j) std::this_thread::yield();
    pending->run->cancel(core::Error("cancelled", "enough"));
    const device::RunOutcome outcome = pending->wait();
    EXPECT_EQ(outcome.error ? outcome.error->detail() : "enough", "enough");
  }
  EXPECT_TRUE(start(*ranks.coordinator, request_of(program))->wait().ok());
}

TEST(Ranks, effects_of_loops_that_diverge_are_in_the_order_of_one_process) {
  for (const bool answers : {false, true}) {
    const compile::LoweredRef program = lowered(diverging(answers));
    const auto run = [&](device::Executor& executor, Notes& notes) {
      device::RunRequest request = request_of(program);
      request.effects = &notes;
      const auto pending = start(executor, std::move(request));
      if (answers) notes.serve(*pending);
      return bytes_of(pending->wait());
    };
    OneProcess one;
    Notes expected;
    const auto bytes = run(one.engine, expected);
    EXPECT_EQ(expected.lines.size(), 36U) << "1 + 2 + ... + 8";
    for (const int count : {2, 4}) {
      for (uint32_t seed = 1; seed <= 3; ++seed) {
        Ranks ranks(count, seed);
        Notes notes;
        EXPECT_EQ(run(*ranks.coordinator, notes), bytes);
        EXPECT_EQ(notes.lines, expected.lines) << count << " ranks, seed " << seed;
      }
    }
  }
}

TEST(Ranks, effect_that_is_refused_ends_the_run_on_all_ranks) {
  const compile::LoweredRef program = lowered(diverging(false));
  Ranks ranks(4);
  for (const int64_t at : {0, 5, 35}) {
    Notes notes;
    notes.fails_at = at;
    device::RunRequest request = request_of(program);
    request.effects = &notes;
    const device::RunOutcome outcome = start(*ranks.coordinator, std::move(request))->wait();
    ASSERT_TRUE(outcome.error.has_value());
    EXPECT_EQ(outcome.error->detail(), "no room for effect " + std::to_string(at));
    EXPECT_EQ(notes.lines.size(), static_cast<size_t>(at));
  }
  Notes notes;
  device::RunRequest request = request_of(program);
  request.effects = &notes;
  EXPECT_TRUE(start(*ranks.coordinator, std::move(request))->wait().ok()) << "the ranks go on";
}

TEST(Ranks, cancelled_run_ends_everywhere_and_frees_its_devices) {
  const compile::LoweredRef program = lowered(diverging(true));
  Ranks ranks(4);
  for (int64_t after = 0; after < 6; ++after) {
    Notes notes;
    device::RunRequest request = request_of(program);
    request.effects = &notes;
    const auto pending = start(*ranks.coordinator, std::move(request));
    if (after > 0) {
      std::unique_lock held(notes.mutex);
      while (notes.asked < after - 1) {
        ASSERT_TRUE(notes.there.wait_for(held, std::chrono::seconds(60),
                                         [&] { return notes.asked >= static_cast<int64_t>(notes.lines.size()); }));
        if (notes.asked >= after - 1) break;
        held.unlock();
        pending->run->resume();
        std::this_thread::yield();
        held.lock();
      }
    }
    pending->run->cancel(core::Error("cancelled", "enough"));
    const device::RunOutcome outcome = pending->wait();
    ASSERT_TRUE(outcome.error.has_value());
    EXPECT_EQ(outcome.error->detail(), "enough");
  }
  EXPECT_TRUE(start(*ranks.coordinator, request_of(lowered(layers())))->wait().ok());
}

TEST(Ranks, budget_ends_the_run_where_it_ends_one_process) {
  const compile::LoweredRef program = lowered(layers());
  OneProcess one;
  Ranks ranks(2);
  const auto outcome = [&](device::Executor& executor, double operations) {
    device::RunRequest request = request_of(program);
    request.operation_budget = operations;
    return start(executor, std::move(request))->wait();
  };
  const double all = outcome(one.engine, 0).stats.operations;
  for (const double part : {0.1, 0.5, 0.9}) {
    const device::RunOutcome expected = outcome(one.engine, all * part);
    const device::RunOutcome got = outcome(*ranks.coordinator, all * part);
    ASSERT_TRUE(expected.error && got.error);
    EXPECT_EQ(got.error->detail(), expected.error->detail());
    EXPECT_EQ(got.error->code(), expected.error->code());
  }
  EXPECT_TRUE(outcome(*ranks.coordinator, all).ok());
}

TEST(Ranks, devices_of_one_other_rank_give_their_results) {
  const compile::LoweredRef program = lowered(R"(sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.multiply %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
})");
  OneProcess one;
  const auto expected = bytes_of(start(one.engine, request_of(program))->wait());
  Ranks ranks(4);
  for (const std::vector<int64_t>& devices : {std::vector<int64_t>{6, 7}, std::vector<int64_t>{3, 6}, {0, 1}}) {
    EXPECT_EQ(bytes_of(start(*ranks.coordinator, request_of(program, devices))->wait()), expected);
  }
}

TEST(Ranks, donated_arguments_are_reported_as_one_process_does) {
  const compile::LoweredRef program = lowered(layers(), std::vector<int64_t>{0, 1});
  OneProcess one;
  const device::RunOutcome expected = start(one.engine, request_of(program))->wait();
  Ranks ranks(2);
  for (int i = 0; i < 10; ++i) {
    const device::RunOutcome outcome = start(*ranks.coordinator, request_of(program))->wait();
    EXPECT_EQ(bytes_of(outcome), bytes_of(expected));
    EXPECT_EQ(outcome.overwritten, expected.overwritten);
  }
}

TEST(Ranks, runs_that_share_devices_and_memory_never_wait_in_a_circle) {
  const compile::LoweredRef wide = lowered(layers());
  const compile::LoweredRef pair = lowered(R"(sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
})");
  const int64_t limit = std::max(wide->plan->peak_bytes, pair->plan->peak_bytes) * 3 / 2;
  Ranks ranks(4, 5, limit);
  std::vector<std::shared_ptr<Pending>> runs;
  for (int64_t i = 0; i < 200; ++i) {
    device::RunRequest request = i % 5 == 0 ? request_of(wide) : request_of(pair, {i * 3 % 8, (i * 3 + 1 + i % 6) % 8});
    request.principal = std::to_string(i % 3);
    runs.push_back(start(*ranks.coordinator, std::move(request)));
  }
  for (const auto& run : runs) EXPECT_TRUE(run->wait().ok());
}

TEST(Ranks, rank_of_another_build_does_not_take_part) {
  auto networks = make_fake_network(2);
  Worker worker(*networks[1], {.threads = 1, .environment = "other"}, new_pool());
  std::thread serving([&] { EXPECT_THROW(worker.serve(), core::Error); });
  CoordinatorOptions options;
  options.engine.device_count = 2;
  options.environment = "test";
  EXPECT_THROW(Coordinator(*networks[0], options, new_pool()), core::Error);
  serving.join();
  for (auto& network : networks) network->close();
}

}  // namespace
}  // namespace meshd::testing
