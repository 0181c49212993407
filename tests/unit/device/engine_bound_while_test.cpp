// Loops as bound calls: the same bytes, counts, budgets and errors as step by step.
#include <algorithm>
#include <map>

#include "tests/support/eventually.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

constexpr int64_t kRowsOfShard = 2;
constexpr int64_t kWidth = 12;

compile::PlanRef plan_with(LocalBuilder& builder, bool is_bound, bool has_small, int threads = 2) {
  compile::PlanOptions options;
  options.donate_as_text_says = true;
  options.threads = threads;
  options.bound_whiles = is_bound;
  options.small_whiles = has_small;
  options.shard_sequences = false;
  options.unroll_whiles = false;
  options.small_while_forms = false;  // products are steps
  return compile::make_plan(builder.finish(), options);
}

int64_t bound_in(const compile::Plan& plan) {
  int64_t count = 0;
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) count += step.bound != nullptr;
  }
  return count;
}

void set_trip_counts(LocalBlock& block, const std::map<LocalId, int64_t>& trips) {
  for (LocalOp& op : block.ops) {
    if (const auto found = op.kind == LocalKind::kWhile ? trips.find(op.results[0]) : trips.end(); found != trips.end())
      op.trip_count = found->second;
    for (LocalBlock& inner : op.blocks) set_trip_counts(inner, trips);
  }
}

/// Loops in loops, branches, collectives, products, values that change places.
class RandomLoops {
 public:
  RandomLoops(LocalBuilder& builder, Random& random, int64_t shards) : b_(builder), r_(random), shards_(shards) {}

  void make() {
    std::vector<LocalId> inits;
    for (size_t i = 1 + below(r_, 3); i > 0; --i) inits.push_back(b_.argument(text(), {{0}, {}}));
    const std::vector<LocalId> out = loop(inits, 0);
    for (const LocalId id : out) b_.result(id);
    if (below(r_, 2) == 0) set_trip_counts(b_.program.body, trips_);
  }

 private:
  [[nodiscard]] std::string text() const {
    return std::to_string(shards_ * kRowsOfShard) + "x" + std::to_string(kWidth) + "xf32";
  }

  LocalId one_of(const std::vector<LocalId>& pool) { return pool[below(r_, pool.size())]; }

  LocalId made_of(const std::vector<LocalId>& pool) {
    const LocalId a = one_of(pool);
    switch (below(r_, 6)) {
      case 0:
        return b_.point("stablehlo.sine", {a});
      case 1:
        return reversed(b_, a);
      case 2: {
        const LocalId whole = b_.reshard(a, {{}, {0}});
        return b_.reshard(b_.point("stablehlo.negate", {whole}), {{0}, {}});
      }
      case 3:
        return b_.broadcast(b_.splat<float>("f32", 0.5F), text(), {}, {{0}, {}});
      default:
        return b_.point(below(r_, 2) == 0 ? "stablehlo.subtract" : "stablehlo.maximum", {a, one_of(pool)});
    }
  }

  std::vector<LocalId> loop(const std::vector<LocalId>& inits, int depth) {
    std::vector<LocalId> all = {b_.splat<int32_t>("i32", 0)};
    all.insert(all.end(), inits.begin(), inits.end());
    const auto trips = static_cast<int32_t>(std::array{0, 1, 2, 3, 4, 7}[below(r_, 6)]);
    const auto out = b_.loop(
        all, [&](const auto& v) { return b_.compare("LT", v[0], b_.splat<int32_t>("i32", trips)); },
        [&](const auto& v) {
          std::vector<LocalId> pool(v.begin() + 1, v.end());
          for (size_t i = 1 + below(r_, 4); i > 0; --i) {
            const size_t kind = depth < 3 ? below(r_, 7) : 6;
            if (kind == 0) {
              const auto inner = loop({one_of(pool), one_of(pool)}, depth + 1);
              pool.insert(pool.end(), inner.begin(), inner.end());
            } else if (kind == 1) {
              const LocalId which = below(r_, 2) == 0
                                        ? b_.compare("LT", v[0], b_.splat<int32_t>("i32", 2))
                                        : b_.point("stablehlo.subtract", {v[0], b_.splat<int32_t>("i32", 1)});
              const auto branch = [&] {
                if (depth < 2 && below(r_, 3) == 0) return std::vector<LocalId>{loop({one_of(pool)}, depth + 2)[0]};
                return std::vector<LocalId>{made_of(pool)};
              };
              pool.push_back(b_.branch(which, {branch, branch})[0]);
            } else {
              pool.push_back(made_of(pool));
            }
          }
          std::vector<LocalId> next = {b_.point("stablehlo.add", {v[0], b_.splat<int32_t>("i32", 1)})};
          for (size_t i = 1; i < v.size(); ++i) next.push_back(one_of(pool));
          return next;
        });
    trips_[out[0]] = trips;
    return {out.begin() + 1, out.end()};
  }

  LocalBuilder& b_;
  Random& r_;
  const int64_t shards_;
  std::map<LocalId, int64_t> trips_;
};

TEST(EngineBoundWhile, random_loops_have_the_bytes_and_counts_of_single_steps) {
  int64_t loops = 0;
  int64_t bound = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const int64_t shards = below(random, 2) == 0 ? 1 : 4;
    LocalBuilder b({shards});
    RandomLoops(b, random, shards).make();
    std::optional<device::RunOutcome> expected;
    Bench bench({.device_count = static_cast<int>(shards), .threads = 2});
    const compile::PlanRef plain = plan_with(b, false, false);
    EXPECT_EQ(bound_in(*plain), 0);
    for (const compile::PlanRef& plan : {plain, plan_with(b, true, false), plan_with(b, true, true)}) {
      for (const compile::Block& block : plan->blocks) {
        for (const compile::Step& step : block.steps) loops += step.kind == compile::StepKind::kWhile;
      }
      bound += bound_in(*plan);
      std::vector<device::RunArgument> arguments;
      for (size_t i = 0; i < plan->arguments.size(); ++i)
        arguments.push_back(bench.shards<float>(counted_shards(shards, kRowsOfShard * kWidth)));
      auto out = bench.run(plan, std::move(arguments));
      ASSERT_TRUE(out.ok());
      if (!expected) {
        expected = std::move(out);
        continue;
      }
      ASSERT_EQ(all_bytes(out), all_bytes(*expected)) << "seed " << seed << "\n" << to_text(*plan);
      EXPECT_EQ(out.stats.steps, expected->stats.steps) << "seed " << seed << "\n" << to_text(*plan);
      EXPECT_EQ(out.stats.kernel_calls, expected->stats.kernel_calls) << "seed " << seed;
      EXPECT_DOUBLE_EQ(out.stats.operations, expected->stats.operations) << "seed " << seed;
      EXPECT_DOUBLE_EQ(out.stats.bytes, expected->stats.bytes) << "seed " << seed;
    }
  }
  EXPECT_GT(bound, loops / 2);
}

/// while (i < n) { i += 1; for three times: (x, y) = (sin(reverse(y)), x) } with n an argument.
compile::PlanRef counting_plan(bool is_bound) {
  LocalBuilder b({1});
  const LocalId n = b.argument("i32");
  const LocalId x = b.argument("2x12xf32");
  const LocalId y = b.argument("2x12xf32");
  const auto add_one = [&](LocalId i) { return b.point("stablehlo.add", {i, b.splat<int32_t>("i32", 1)}); };
  const LocalId zero = b.splat<int32_t>("i32", 0);
  LocalId inner_loop = -1;
  const auto out = b.loop(
      {zero, x, y}, [&](const auto& v) { return b.compare("LT", v[0], n); },
      [&](const auto& v) {
        const auto inner = b.loop(
            {zero, v[1], v[2]}, [&](const auto& w) { return b.compare("LT", w[0], b.splat<int32_t>("i32", 3)); },
            [&](const auto& w) {
              return std::vector<LocalId>{add_one(w[0]), b.point("stablehlo.sine", {reversed(b, w[2])}), w[1]};
            });
        inner_loop = inner[0];
        return std::vector<LocalId>{add_one(v[0]), inner[2], inner[1]};
      });
  for (const LocalId id : out) b.result(id);
  set_trip_counts(b.program.body, {{inner_loop, 3}});
  return plan_with(b, is_bound, false);
}

device::RunRequest counting_request(Bench& bench, const compile::PlanRef& plan, int32_t n) {
  device::RunRequest request;
  request.plan = plan;
  request.arguments = {bench.shards<int32_t>({{n}}), bench.shards<float>(counted_shards(1, 24)),
                       bench.shards<float>({std::vector<float>(24, 0.25F)})};
  return request;
}

TEST(EngineBoundWhile, budgets_end_it_at_the_same_step) {
  const auto fast = counting_plan(true);
  const auto plain = counting_plan(false);
  ASSERT_EQ(bound_in(*fast), 2) << to_text(*fast);
  Bench bench({.threads = 2});
  const auto whole = bench.start(counting_request(bench, plain, 20))->wait();
  ASSERT_TRUE(whole.ok());
  const auto compare = [&](int64_t steps, double operations, double bytes) {
    const auto run = [&](const compile::PlanRef& plan) {
      auto request = counting_request(bench, plan, 20);
      request.step_budget = steps;
      request.operation_budget = operations;
      request.byte_budget = bytes;
      return bench.start(std::move(request))->wait();
    };
    const auto expected = run(plain);
    const auto got = run(fast);
    ASSERT_EQ(got.ok(), expected.ok()) << steps << " " << operations << " " << bytes;
    EXPECT_EQ(got.stats.steps, expected.stats.steps) << steps << " " << operations << " " << bytes;
    if (expected.error) {
      EXPECT_EQ(got.error->detail(), expected.error->detail());
    }
  };
  for (int64_t steps = 1; steps <= whole.stats.steps + 1; ++steps) compare(steps, 0, 0);
  for (const double part : {0.01, 0.3, 0.5, 0.97, 0.99, 1.0, 2.0}) {
    compare(0, whole.stats.operations * part, 0);
    compare(0, 0, whole.stats.bytes * part);
  }
}

// Loops in it that are too long to be counted exactly, and one that is not entered.
TEST(EngineBoundWhile, a_loop_of_endless_ones_has_no_such_form) {
  for (const int64_t trips : {int64_t{0}, int64_t{3}, (int64_t{1} << 62) - 2, (int64_t{1} << 62) - 1}) {
    LocalBuilder b({1});
    const LocalId x = b.argument("2x12xf32");
    const LocalId zero = b.splat<int32_t>("i32", 0);
    LocalId inner_loop = -1;
    const auto add_one = [&](LocalId i) { return b.point("stablehlo.add", {i, b.splat<int32_t>("i32", 1)}); };
    const auto out = b.loop(
        {zero, x}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 60)); },
        [&](const auto& v) {
          const auto inner = b.loop(
              {zero, v[1]}, [&](const auto& w) { return b.compare("LT", w[0], b.splat<int32_t>("i32", 3)); },
              [&](const auto& w) {
                return std::vector<LocalId>{add_one(w[0]), reversed(b, w[1])};
              });
          inner_loop = inner[0];
          return std::vector<LocalId>{add_one(v[0]), b.point("stablehlo.sine", {inner[1]})};
        });
    b.result(out[1]);
    set_trip_counts(b.program.body, {{inner_loop, trips}});
    EXPECT_EQ(bound_in(*plan_with(b, true, false)), trips > 3 ? 1 : 2) << trips;
  }
}

TEST(EngineBoundWhile, runs_share_their_devices_and_end_when_they_are_cancelled) {
  const auto plan = counting_plan(true);
  constexpr int32_t kIterations = 20'000;
  for (const int threads : {1, 2}) {
    Bench bench({.threads = threads});
    const auto alone = bench.start(counting_request(bench, plan, kIterations))->wait();
    const auto first = bench.start(counting_request(bench, plan, kIterations));
    const auto second = bench.start(counting_request(bench, plan, kIterations));
    EXPECT_EQ(all_bytes(first->wait()), all_bytes(alone));
    EXPECT_EQ(all_bytes(second->wait()), all_bytes(alone));
    const auto endless = bench.start(counting_request(bench, plan, std::numeric_limits<int32_t>::max()));
    const auto beside = bench.start(counting_request(bench, plan, kIterations));
    EXPECT_EQ(all_bytes(beside->wait()), all_bytes(alone));
    EXPECT_TRUE(testing::eventually([&] { return endless->run->progress().steps_done > 0; })) << "it tells nothing";
    endless->run->cancel(core::Error("cancelled", "enough"));
    EXPECT_EQ(endless->wait().error->code().word(), "cancelled");
    EXPECT_EQ(bench.engine.stats().planned_bytes, 0);
  }
}

TEST(EngineBoundWhile, loops_of_steps_that_are_worth_threads_are_executed_step_by_step) {
  LocalBuilder b({1});
  const LocalId x = b.argument("600x600xf32");
  const auto out = b.loop(
      {b.splat<int32_t>("i32", 0), x}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 3)); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}),
                                    b.point("stablehlo.sine", {v[1]})};
      });
  b.result(out[1]);
  const compile::PlanRef plan = plan_with(b, true, false);
  ASSERT_EQ(bound_in(*plan), 1);
  Bench bench({.threads = 2});
  const auto done = bench.run(plan, {bench.shards<float>({std::vector<float>(360'000, 0.5F)})});
  EXPECT_GE(done.stats.handoffs, 3);
}

}  // namespace
}  // namespace meshd::test
