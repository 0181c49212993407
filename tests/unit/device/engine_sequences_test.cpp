// Sequences of steps that are executed shard by shard: where they end, and that nothing shows but the time.
#include <algorithm>
#include <map>

#include "service/ops/kernel_interface.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

constexpr int64_t kShards = 8;

compile::PlanOptions options_of(bool by_shard, int threads = 2) {
  compile::PlanOptions options;
  options.donate_as_text_says = true;
  options.threads = threads;
  options.fuse = false;  // more steps
  options.simplify = false;
  options.shard_sequences = by_shard;
  return options;
}

compile::PlanRef plan_with(LocalBuilder& builder, bool by_shard, int threads = 2) {
  return compile::make_plan(builder.finish(), options_of(by_shard, threads));
}

// Steps are estimated at just less than what is shared between threads: sequences are executed shard by shard.
compile::PlanRef just_too_small(const compile::PlanRef& plan) { return estimated_at(plan, 59'000); }

// Lengths of the sequences of the program's own block.
std::vector<int32_t> sequences_of(const compile::Plan& plan) {
  std::vector<int32_t> out;
  const std::vector<compile::Step>& steps = plan.block(0).steps;
  for (size_t i = 0; i < steps.size(); i += static_cast<size_t>(steps[i].sequence)) out.push_back(steps[i].sequence);
  return out;
}

// Rows over 8 shards: slices, mirrors and sums of arrays of 64, 32 and 16 columns, in loops, too.
void random_rows(LocalBuilder& b, Random& random) {
  std::map<int64_t, std::vector<LocalId>> pool = {{64, {b.argument("16x64xf32", {{0}, {}})}}};
  // Lives to the end, has no bytes, and lies where another slot begins.
  const LocalId empty = below(random, 2) == 0 ? b.point("stablehlo.sine", {b.argument("16x0xf32", {{0}, {}})}) : -1;
  const auto any = [&](int64_t columns) {
    const auto& from = pool[columns];
    return from[below(random, from.size())];
  };
  const auto grow = [&](size_t count, std::map<int64_t, std::vector<LocalId>>& values) {
    for (size_t i = 0; i < count; ++i) {
      auto at = values.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(below(random, values.size())));
      const int64_t columns = at->first;
      const LocalId from = any(columns);
      switch (below(random, columns > 16 ? 4 : 3)) {
        case 0:
          values[columns].push_back(reversed(b, from));
          break;
        case 1:
          values[columns].push_back(b.point("stablehlo.add", {from, any(columns)}));
          break;
        case 2:
          values[columns].push_back(b.point("stablehlo.sine", {from}));
          break;
        default:
          values[columns / 2].push_back(half_of_columns(b, from, kShards, 16, columns, below(random, 2) == 0));
      }
    }
  };
  grow(6 + below(random, 10), pool);
  if (below(random, 2) == 0) {
    const LocalId zero = b.splat<int32_t>("i32", 0);
    const auto out = b.loop(
        {zero, any(64), any(64)}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 3)); },
        [&](const auto& v) {
          // Values that change places: the loop exchanges pointers.
          return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}), reversed(b, v[2]),
                                      b.point("stablehlo.cosine", {v[1]})};
        });
    if (below(random, 2) == 0) {
      pool[64].push_back(out[1]);
      pool[64].push_back(out[2]);
    } else {
      // Read last where the bytes of one may be those of the other.
      pool = {{32, {half_of_columns(b, out[1], kShards, 16, 64, false)}}};
    }
    grow(4 + below(random, 8), pool);
  }
  for (const auto& [columns, values] : pool) b.result(values.back());
  if (empty >= 0) b.result(b.point("stablehlo.cosine", {empty}));
}

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  bool is_written = false;
};

// The arena's bytes that the shard of a step touches; both slots of a pair that a loop exchanges.
std::vector<Range> touched(const compile::Plan& plan, const compile::Step& step, int64_t shard) {
  std::vector<Range> out;
  const auto add = [&](compile::SlotId id, int64_t slot_shard, bool is_written) {
    const compile::Slot& slot = plan.slot(id);
    if (slot.storage != compile::Storage::kArena) return;
    const int64_t begin = slot.offset + slot_shard * slot.stride;
    out.push_back({begin, begin + slot.bytes, is_written});
  };
  const auto add_all = [&](const std::vector<compile::SlotRef>& refs, bool is_written) {
    for (const compile::SlotRef& ref : refs) {
      add(ref.slot, plan.slot_shard(ref, shard), is_written);
      for (const compile::Block& block : plan.blocks) {
        for (const compile::Step& loop : block.steps) {
          for (const auto& [a, b] : loop.exchanges) {
            if (a == ref.slot) add(b, plan.slot_shard(ref, shard), is_written);
            if (b == ref.slot) add(a, plan.slot_shard(ref, shard), is_written);
          }
        }
      }
    }
  };
  add_all(step.operands, false);
  add_all(step.results, true);
  return out;
}

// Whether steps [begin, end) of a block may be executed shard by shard: no shard touches what another one writes.
bool is_safe(const compile::Plan& plan, const std::vector<compile::Step>& steps, size_t begin, size_t end) {
  std::vector<std::vector<Range>> of_shard(kShards);
  for (int64_t shard = 0; shard < kShards; ++shard) {
    for (size_t i = begin; i < end; ++i) {
      const auto ranges = touched(plan, steps[i], shard);
      auto& all = of_shard[static_cast<size_t>(shard)];
      all.insert(all.end(), ranges.begin(), ranges.end());
    }
  }
  for (const auto& left : of_shard) {
    for (const auto& right : of_shard) {
      if (&left == &right) continue;
      for (const Range& x : left) {
        for (const Range& y : right) {
          if ((x.is_written || y.is_written) && x.begin < y.end && y.begin < x.end) return false;
        }
      }
    }
  }
  return true;
}

TEST(EngineSequences, end_at_collectives_and_at_values_without_shards) {
  LocalBuilder b({kShards});
  const LocalId x = b.argument("16x64xf32", {{0}, {}});
  LocalId v = reversed(b, reversed(b, b.point("stablehlo.sine", {x})));
  b.result(v);
  const LocalId whole = b.reshard(v, {{}, {}});
  v = b.reshard(reversed(b, whole), {{0}, {}});
  b.result(reversed(b, b.point("stablehlo.cosine", {v})));
  EXPECT_EQ(sequences_of(*plan_with(b, true)), (std::vector<int32_t>{3, 1, 1, 1, 2}));
  EXPECT_EQ(sequences_of(*plan_with(b, false)), (std::vector<int32_t>{1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(EngineSequences, have_no_shard_that_touches_what_another_one_writes) {
  int long_ones = 0;
  int cut_ones = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    Random random(seed);
    LocalBuilder b({kShards});
    random_rows(b, random);
    const compile::PlanRef plan = plan_with(b, true);
    for (const compile::Block& block : plan->blocks) {
      for (size_t i = 0; i < block.steps.size(); ++i) {
        const auto end = i + static_cast<size_t>(block.steps[i].sequence);
        if (plan->table(block.steps[i].table).count() != kShards) continue;
        EXPECT_TRUE(is_safe(*plan, block.steps, i, end)) << "seed " << seed << ", step " << i;
        if (end - i < 2) continue;
        ++long_ones;
        const bool goes_on = end < block.steps.size() && block.steps[end].kind == compile::StepKind::kKernel &&
                             block.steps[end].table == block.steps[i].table;
        cut_ones += goes_on && !is_safe(*plan, block.steps, i, end + 1);
      }
    }
  }
  EXPECT_GT(long_ones, 300);
  EXPECT_GT(cut_ones, 10) << "nothing is seen where there is no hazard";
}

TEST(EngineSequences, have_scratch_for_each_thread) {
  LocalBuilder b({kShards});
  // A kernel without work items, which has scratch all the same.
  const LocalId none = b.argument("8x0x64x64xbf16", {{0}, {}, {}, {}});
  const LocalId factor = b.like(none);
  b.op("stablehlo.cholesky", {none}, {factor}, {{"lower", attribute(ir::IntegerAttr{1, "i1"})}});
  b.result(b.point("stablehlo.negate", {factor}));
  const compile::PlanRef plan = plan_with(b, true);
  ASSERT_EQ(sequences_of(*plan), (std::vector<int32_t>{2}));
  const int64_t scratch = plan->block(0).steps.front().kernel->scratch_bytes;
  ASSERT_GT(scratch, 0);
  EXPECT_GE(plan->shared_scratch_bytes, 2 * scratch);
}

TEST(EngineSequences, have_the_bytes_and_the_counts_of_steps) {
  int64_t handoffs[2] = {};  // step by step, shard by shard
  for (unsigned seed = 0; seed < 60; ++seed) {
    Random random(seed);
    LocalBuilder b({kShards});
    random_rows(b, random);
    std::vector<std::vector<float>> rows(kShards, std::vector<float>(2 * 64));
    for (auto& shard : rows) {
      for (float& value : shard) value = static_cast<float>(below(random, 1000)) / 100 - 5;
    }
    std::optional<device::RunOutcome> expected;
    for (const int threads : {1, 2, 3, 4}) {
      Bench bench({.device_count = kShards, .threads = threads});
      for (const bool by_shard : {false, true}) {
        const compile::PlanRef plan = just_too_small(plan_with(b, by_shard, threads));
        std::vector<device::RunArgument> arguments = {bench.shards<float>(rows)};
        if (plan->arguments.size() > 1)
          arguments.push_back(bench.shards<float>(std::vector<std::vector<float>>(kShards)));
        auto out = bench.run(plan, std::move(arguments));
        ASSERT_TRUE(out.ok());
        handoffs[by_shard ? 1 : 0] += out.stats.handoffs;
        if (!expected) {
          expected = std::move(out);
          continue;
        }
        EXPECT_EQ(all_bytes(out), all_bytes(*expected)) << "seed " << seed << ", " << threads << " threads";
        EXPECT_EQ(out.stats.steps, expected->stats.steps);
        EXPECT_EQ(out.stats.operations, expected->stats.operations);
        EXPECT_EQ(out.stats.bytes, expected->stats.bytes);
      }
    }
  }
  EXPECT_GT(handoffs[1], handoffs[0] + 60) << "threads share nothing";
}

TEST(EngineSequences, end_at_the_step_that_a_budget_does_not_allow) {
  LocalBuilder b({kShards});
  LocalId v = b.argument("16x64xf32", {{0}, {}});
  for (int i = 0; i < 6; ++i) v = b.point("stablehlo.sine", {v});
  b.result(v);
  const compile::PlanRef plan = just_too_small(plan_with(b, true));
  ASSERT_EQ(sequences_of(*plan), (std::vector<int32_t>{6}));
  Bench bench({.device_count = kShards, .threads = 2});
  const std::vector<std::vector<float>> rows(kShards, std::vector<float>(2 * 64, 1));
  const auto run = [&](device::RunRequest request) {
    request.plan = plan;
    request.arguments = {bench.shards<float>(rows)};
    return bench.start(std::move(request))->wait();
  };
  const device::RunOutcome whole = run({});
  ASSERT_TRUE(whole.ok());
  for (int64_t steps = 1; steps < 6; ++steps) {
    device::RunRequest request;
    request.step_budget = steps;
    const auto out = run(std::move(request));
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.error->code().word(), "budget_exceeded");
    EXPECT_EQ(out.stats.steps, steps);
  }
  device::RunRequest request;
  request.byte_budget = whole.stats.bytes * 0.75;
  const auto out = run(std::move(request));
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error->code().word(), "budget_exceeded");
  EXPECT_EQ(out.stats.steps, 4) << "four of six may be executed";
}

TEST(EngineSequences, end_when_their_run_is_cancelled) {
  LocalBuilder b({kShards});
  LocalId v = b.argument("8192x512xf32", {{0}, {}});
  for (int i = 0; i < 40; ++i) v = b.point("stablehlo.sine", {v});
  b.result(v);
  for (const int threads : {1, 2}) {
    const compile::PlanRef plan = plan_with(b, true, threads);
    Bench bench({.device_count = kShards, .threads = threads});
    const std::vector<std::vector<float>> rows(kShards, std::vector<float>(1024 * 512, 1));
    device::RunRequest request;
    request.plan = plan;
    request.arguments = {bench.shards<float>(rows)};
    const auto pending = bench.start(std::move(request));
    pending->run->cancel(core::Error("cancelled", "enough"));
    EXPECT_EQ(pending->wait().error->code().word(), "cancelled");
    EXPECT_EQ(bench.engine.stats().planned_bytes, 0);
  }
}

}  // namespace
}  // namespace meshd::test
