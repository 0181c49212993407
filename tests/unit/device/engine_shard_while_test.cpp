// Loops that are executed shard by shard: the same bytes, counts, budgets and errors as step by step.
#include <algorithm>
#include <map>

#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

constexpr int64_t kShards = 8;
constexpr int64_t kRows = 2;  // of a shard
constexpr int64_t kColumns = 64;

compile::PlanRef plan_with(LocalBuilder& builder, bool by_shard, int threads = 2, bool fuse = true) {
  compile::PlanOptions options;
  options.donate_as_text_says = true;
  options.threads = threads;
  options.small_whiles = false;  // they come first
  options.shard_sequences = by_shard;
  options.bound_whiles = by_shard;
  options.fuse = fuse;  // off: more steps
  return compile::make_plan(builder.finish(), options);
}

int64_t found_in(const compile::Plan& plan) {
  int64_t count = 0;
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) count += step.by_shard != nullptr;
  }
  return count;
}

/// How many slots of single shards the threads have of their own.
int64_t apart_in(const compile::Plan& plan) {
  int64_t count = 0;
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) {
      if (step.by_shard == nullptr) continue;
      for (const auto& own : step.by_shard->own) count += !own.is_replicated;
    }
  }
  return count;
}

/// The plan, with loops whose threads meet each time that about so many iterations are done.
compile::PlanRef meeting_after(const compile::PlanRef& plan, int64_t iterations) {
  compile::Plan out = *plan;
  for (compile::Block& block : out.blocks) {
    for (compile::Step& step : block.steps) {
      if (step.by_shard == nullptr) continue;
      auto form = std::make_shared<compile::ShardWhileStep>(*step.by_shard);
      form->iteration.estimated_ns = 20e6 / static_cast<double>(iterations) - 1;
      step.by_shard = std::move(form);
    }
  }
  return std::make_shared<const compile::Plan>(std::move(out));
}

std::string rows_of(int64_t columns) {
  return std::to_string(kShards * kRows) + "x" + std::to_string(columns) + "xf32";
}

LocalId joined(LocalBuilder& b, LocalId left, LocalId right, int64_t columns) {
  const LocalId out = b.value(rows_of(2 * columns), {{0}, {}});
  b.op("stablehlo.concatenate", {left, right}, {out}, {{"dimension", attribute(ir::IntegerAttr{1, "i64"})}});
  return out;
}

/// The number on all lanes of rows.
LocalId spread(LocalBuilder& b, LocalId number, LocalId like) {
  const LocalId out = b.like(like);
  b.op("stablehlo.broadcast_in_dim", {number}, {out},
       {{"broadcast_dimensions", attribute(ir::IntArrayAttr{{}, "i64"})}});
  return out;
}

/// A loop that carries a counter, a scalar and rows, permutes and combines them, with values of other widths in
/// between.
void random_loop(LocalBuilder& b, Random& random, int32_t iterations) {
  const size_t count = 1 + below(random, 3);
  std::vector<LocalId> inits = {b.splat<int32_t>("i32", 0), b.argument("f32")};
  for (size_t i = 0; i < count; ++i) inits.push_back(b.argument(rows_of(kColumns), {{0}, {}}));
  const bool reads_outside = below(random, 2) == 0;
  const LocalId outside = reads_outside ? b.point("stablehlo.sine", {inits[2]}) : -1;
  const auto out = b.loop(
      inits, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", iterations)); },
      [&](const auto& v) {
        std::map<int64_t, std::vector<LocalId>> pool = {{kColumns, {v.begin() + 2, v.end()}}};
        if (reads_outside) pool[kColumns].push_back(outside);
        if (below(random, 2) == 0) pool[kColumns].push_back(spread(b, v[1], v[2]));
        const auto any = [&](int64_t columns) {
          const auto& from = pool[columns];
          return from[below(random, from.size())];
        };
        for (size_t i = 4 + below(random, 14); i > 0; --i) {
          auto at = pool.begin();
          std::advance(at, static_cast<std::ptrdiff_t>(below(random, pool.size())));
          const int64_t columns = at->first;
          const LocalId from = any(columns);
          switch (below(random, 5)) {
            case 0:
              pool[columns].push_back(reversed(b, from));
              break;
            case 1:
              pool[columns].push_back(b.point("stablehlo.add", {from, any(columns)}));
              break;
            case 2:
              if (columns > 16)
                pool[columns / 2].push_back(
                    half_of_columns(b, from, kShards, kShards * kRows, columns, below(random, 2) == 0));
              break;
            case 3:
              if (columns < 2 * kColumns) pool[2 * columns].push_back(joined(b, from, any(columns), columns));
              break;
            default:
              pool[columns].push_back(b.point("stablehlo.sine", {from}));
          }
        }
        // What was made of other widths counts, too.
        for (const auto& [columns, values] : std::map(pool)) {
          if (columns < kColumns) pool[kColumns].push_back(joined(b, values.back(), values.back(), columns));
          if (columns == kColumns / 4) pool[kColumns].pop_back();
          if (columns > kColumns)
            pool[kColumns].push_back(half_of_columns(b, values.back(), kShards, kShards * kRows, columns, false));
        }
        std::vector<LocalId> next = {b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}),
                                     below(random, 2) == 0 ? v[1] : b.point("stablehlo.sine", {v[1]})};
        for (size_t i = 0; i < count; ++i)
          next.push_back(below(random, 3) == 0 ? any(kColumns) : pool[kColumns].back());
        return next;
      });
  for (const LocalId id : out) b.result(id);
}

struct Arguments {
  std::vector<std::vector<std::vector<float>>> rows;  // by argument, then shard

  Arguments(const compile::Plan& plan, Random& random) {
    for (size_t i = 1; i < plan.arguments.size(); ++i) {
      rows.emplace_back(kShards, std::vector<float>(kRows * kColumns));
      for (auto& shard : rows.back()) {
        for (float& value : shard) value = static_cast<float>(below(random, 1000)) / 100 - 5;
      }
    }
  }
  [[nodiscard]] std::vector<device::RunArgument> in(Bench& bench) const {
    std::vector<device::RunArgument> out = {bench.shards<float>({{0.75F}})};
    for (const auto& argument : rows) out.push_back(bench.shards<float>(argument));
    return out;
  }
};

TEST(EngineShardWhile, random_loops_have_the_bytes_and_counts_of_single_steps) {
  int64_t found = 0;
  int64_t apart = 0;
  int64_t handoffs[2] = {};  // where steps or chunks are too small to be shared, and where chunks are large
  for (unsigned seed = 0; seed < 120; ++seed) {
    Random random(seed);
    LocalBuilder b({kShards});
    const int32_t iterations = std::array{0, 1, 2, 7, 40}[below(random, 5)];
    random_loop(b, random, iterations);
    const bool fuse = seed % 2 == 0;
    const Arguments arguments(*plan_with(b, false), random);
    std::optional<device::RunOutcome> expected;
    for (const int threads : {1, 2, 3}) {
      Bench bench({.device_count = kShards, .threads = threads});
      const compile::PlanRef plain = plan_with(b, false, threads, fuse);
      const compile::PlanRef fast = plan_with(b, true, threads, fuse);
      EXPECT_EQ(found_in(*plain), 0);
      found += found_in(*fast);
      apart += apart_in(*fast);
      for (const compile::PlanRef& plan : {plain, fast, meeting_after(fast, 1), meeting_after(fast, 3)}) {
        auto out = bench.run(plan, arguments.in(bench));
        ASSERT_TRUE(out.ok());
        handoffs[plan == plain || plan == fast ? 0 : 1] += out.stats.handoffs;
        if (!expected) {
          expected = std::move(out);
          continue;
        }
        ASSERT_EQ(all_bytes(out), all_bytes(*expected)) << "seed " << seed << ", " << threads << " threads\n"
                                                        << to_text(*plan);
        EXPECT_EQ(out.stats.steps, expected->stats.steps);
        EXPECT_EQ(out.stats.operations, expected->stats.operations);
        EXPECT_EQ(out.stats.bytes, expected->stats.bytes);
      }
    }
  }
  EXPECT_GT(found, 330) << "of 360";
  EXPECT_GT(apart, 100) << "no slots share bytes";
  EXPECT_GT(handoffs[1], handoffs[0] + 60) << "threads share nothing";
}

/// while (i < n) { i += 1; x = sin(reverse(x)) } with n an argument.
compile::PlanRef counting_plan(bool by_shard) {
  LocalBuilder b({kShards});
  const LocalId n = b.argument("i32");
  const LocalId x = b.argument(rows_of(kColumns), {{0}, {}});
  const auto out = b.loop(
      {b.splat<int32_t>("i32", 0), x}, [&](const auto& v) { return b.compare("LT", v[0], n); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}),
                                    b.point("stablehlo.sine", {reversed(b, v[1])})};
      });
  b.result(out[0]);
  b.result(out[1]);
  return plan_with(b, by_shard);
}

device::RunRequest counting_request(Bench& bench, const compile::PlanRef& plan, int32_t n) {
  device::RunRequest request;
  request.plan = plan;
  request.arguments = {bench.shards<int32_t>({{n}}), bench.shards<float>(counted_shards(kShards, kRows * kColumns))};
  return request;
}

TEST(EngineShardWhile, budgets_end_it_at_the_same_step) {
  const auto fast = counting_plan(true);
  const auto plain = counting_plan(false);
  ASSERT_EQ(found_in(*fast), 1);
  Bench bench({.device_count = kShards, .threads = 2});
  const auto whole = bench.start(counting_request(bench, plain, 50))->wait();
  ASSERT_TRUE(whole.ok());
  const auto compare = [&](int64_t steps, double operations, double bytes) {
    const auto run = [&](const compile::PlanRef& plan) {
      auto request = counting_request(bench, plan, 50);
      request.step_budget = steps;
      request.operation_budget = operations;
      request.byte_budget = bytes;
      return bench.start(std::move(request))->wait();
    };
    const auto expected = run(plain);
    for (const compile::PlanRef& plan : {fast, meeting_after(fast, 4)}) {
      const auto got = run(plan);
      ASSERT_EQ(got.ok(), expected.ok()) << steps << " " << operations << " " << bytes;
      EXPECT_EQ(got.stats.steps, expected.stats.steps) << steps << " " << operations << " " << bytes;
      if (expected.error) {
        EXPECT_EQ(got.error->detail(), expected.error->detail());
      }
    }
  };
  const int64_t steps = whole.stats.steps;
  for (const int64_t most : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{6}, steps / 2,
                             steps - 6, steps - 5, steps - 4, steps - 3, steps - 2, steps - 1, steps, steps + 1})
    compare(most, 0, 0);
  for (const double part : {0.01, 0.3, 0.5, 0.97, 0.99, 1.0, 2.0}) {
    compare(0, whole.stats.operations * part, 0);
    compare(0, 0, whole.stats.bytes * part);
  }
}

TEST(EngineShardWhile, runs_share_their_devices_and_end_when_they_are_cancelled) {
  const auto plan = counting_plan(true);
  constexpr int32_t kIterations = 5'000;
  for (const int threads : {1, 2}) {
    Bench bench({.device_count = kShards, .threads = threads});
    const auto alone = bench.start(counting_request(bench, plan, kIterations))->wait();
    const auto first = bench.start(counting_request(bench, plan, kIterations));
    const auto second = bench.start(counting_request(bench, plan, kIterations));
    EXPECT_EQ(all_bytes(first->wait()), all_bytes(alone));
    EXPECT_EQ(all_bytes(second->wait()), all_bytes(alone));
    const auto endless = bench.start(counting_request(bench, plan, std::numeric_limits<int32_t>::max()));
    const auto beside = bench.start(counting_request(bench, plan, kIterations));
    EXPECT_EQ(all_bytes(beside->wait()), all_bytes(alone));
    EXPECT_GT(endless->run->progress().steps_done, 0) << "it tells nothing";
    endless->run->cancel(core::Error("cancelled", "enough"));
    EXPECT_EQ(endless->wait().error->code().word(), "cancelled");
    EXPECT_EQ(bench.engine.stats().planned_bytes, 0);
  }
}

// What each device computes for itself may have another name, under which its first shard is everybody's.
TEST(EngineShardWhile, a_condition_that_is_one_shard_of_several_is_no_replicated_value) {
  for (const bool is_condition : {true, false}) {
    LocalBuilder b({kShards});
    const LocalId c = b.argument("f32", {}, 0b1);  // a number of each device
    const LocalId x = b.argument(rows_of(kColumns), {{0}, {}});
    const LocalId t = b.argument("f32");
    const auto first_of = [&](LocalId varied) { return b.reshard(varied, {}, 0); };
    const auto out = b.loop(
        {c, t, x},
        [&](const auto& v) {
          const LocalId most = b.splat<float>("f32", 10);
          return is_condition ? first_of(b.compare("LT", v[0], most)) : b.compare("LT", v[1], most);
        },
        [&](const auto& v) {
          const LocalId one = b.splat<float>("f32", 1);
          return std::vector<LocalId>{is_condition ? b.point("stablehlo.add", {v[0], one}) : v[0],
                                      b.point("stablehlo.add", {v[1], is_condition ? one : first_of(c)}),
                                      b.point("stablehlo.sine", {reversed(b, v[2])})};
        });
    for (const LocalId id : out) b.result(id);
    const auto fast = plan_with(b, true);
    EXPECT_EQ(found_in(*fast), is_condition ? 0 : 1) << to_text(*fast);
    Bench bench({.device_count = kShards, .threads = 2});
    const auto run = [&](const compile::PlanRef& plan) {
      return bench.run(plan,
                       {bench.shards<float>(std::vector<std::vector<float>>(kShards, {1})),
                        bench.shards<float>(counted_shards(kShards, kRows * kColumns)), bench.shards<float>({{0}})});
    };
    EXPECT_EQ(all_bytes(run(meeting_after(fast, 3))), all_bytes(run(plan_with(b, false))));
  }
}

// What a shard needs of others, or all threads together, is executed step by step.
TEST(EngineShardWhile, loops_with_collectives_and_with_large_replicated_values_have_no_such_form) {
  const auto found = [](const std::function<std::vector<LocalId>(LocalBuilder&, const std::vector<LocalId>&)>& body,
                        const std::string& replicated) {
    LocalBuilder b({kShards});
    const LocalId x = b.argument(rows_of(kColumns), {{0}, {}});
    const LocalId y = b.argument(replicated);
    const auto out = b.loop(
        {b.splat<int32_t>("i32", 0), x, y},
        [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 3)); },
        [&](const auto& v) {
          std::vector<LocalId> next = body(b, v);
          next.insert(next.begin(), b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}));
          return next;
        });
    for (const LocalId id : out) b.result(id);
    return found_in(*plan_with(b, true));
  };
  const auto local = [](LocalBuilder& b, const auto& v) {
    return std::vector<LocalId>{reversed(b, v[1]), b.point("stablehlo.sine", {v[2]})};
  };
  EXPECT_EQ(found(local, "4xf32"), 1);
  EXPECT_EQ(found(local, "4000xf32"), 0);
  EXPECT_EQ(found(
                [](LocalBuilder& b, const auto& v) {
                  return std::vector<LocalId>{b.reshard(b.reshard(v[1], {{}, {0}}), {{0}, {}}), v[2]};
                },
                "4xf32"),
            0);
}

}  // namespace
}  // namespace meshd::test
