// Loops of small steps as one step: the same bytes, budgets and errors as step by step.
#include <algorithm>
#include <limits>

#include "service/kernels/cpu.h"
#include "service/kernels/fused/small_while.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

// Small loops as machine code where it can be, or interpreted; or all steps by themselves.
enum class Loops : uint8_t { kCode, kInterpreted, kSteps };

compile::PlanRef plan_with(LocalBuilder& builder, Loops loops) {
  compile::PlanOptions options;
  options.donate_as_text_says = true;
  options.threads = 2;
  options.small_whiles = loops != Loops::kSteps;
  options.generate_code = loops == Loops::kCode;
  options.code_after = 0;
  return compile::make_plan(builder.finish(), options);
}

int64_t small_whiles_in(const compile::Plan& plan) {
  int64_t count = 0;
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) count += step.small != nullptr;
  }
  return count;
}

/// Of these, loops that can be code.
int64_t coded_in(const compile::Plan& plan) {
  int64_t count = 0;
  for (const compile::Block& block : plan.blocks) {
    for (const compile::Step& step : block.steps) count += step.small != nullptr && step.small->loop->can_be_code();
  }
  return count;
}

template <typename T>
T any_of(Random& random, const std::vector<T>& items) {
  return items[below(random, items.size())];
}

// A loop that carries a counter and values of some types, and permutes and combines them.
struct RandomLoop {
  RandomLoop(LocalBuilder& builder, Random& random) : b(builder), r(random) {}

  LocalId one_point(const std::vector<LocalId>& pool) {
    const LocalId a = any_of(r, pool);
    const LocalId c = any_of(r, pool);
    switch (below(r, 6)) {
      case 0:
        return b.point("stablehlo.sine", {a});
      case 1:
        return b.point("stablehlo.multiply", {a, c});
      case 2:
        return b.point("stablehlo.maximum", {a, c});
      case 3: {
        const LocalId out = b.like(a);
        b.op("stablehlo.select", {b.compare("GT", a, c), a, c}, {out});
        return out;
      }
      default:
        return b.point(below(r, 2) == 0 ? "stablehlo.add" : "stablehlo.subtract", {a, c});
    }
  }

  void make(const std::string& whole, const std::vector<std::vector<int>>& sharding, size_t vectors, int32_t iterations,
            bool diverges) {
    std::vector<LocalId> inits = {b.splat<int32_t>("i32", 0)};
    for (size_t i = 0; i < vectors; ++i) inits.push_back(b.argument(whole, sharding));
    const LocalId scalar = b.argument("f32");
    inits.push_back(scalar);
    LocalId limit = b.splat<int32_t>("i32", iterations);
    if (diverges) {
      const LocalId position = b.position();
      const LocalId number = b.like(position, "i32");
      b.op("stablehlo.convert", {position}, {number});
      limit = b.point("stablehlo.add", {number, limit});
    }
    const auto out = b.loop(
        inits, [&](const auto& v) { return b.compare("LT", v[0], limit); },
        [&](const auto& v) {
          std::vector<LocalId> next = {b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)})};
          std::vector<LocalId> pool(v.begin() + 1, v.end() - 1);
          // The scalar on all lanes.
          const LocalId spread = b.like(pool[0]);
          b.op("stablehlo.broadcast_in_dim", {v.back()}, {spread},
               {{"broadcast_dimensions", attribute(ir::IntArrayAttr{{}, "i64"})}});
          pool.push_back(spread);
          const size_t count = 1 + below(r, 6);
          for (size_t i = 0; i < count; ++i) pool.push_back(one_point(pool));
          // By itself it would be a step without a fused loop.
          pool.erase(std::find(pool.begin(), pool.end(), spread));
          for (size_t i = 0; i < vectors; ++i) next.push_back(any_of(r, pool));
          next.push_back(below(r, 2) == 0 ? v.back() : b.point("stablehlo.negate", {v.back()}));
          return next;
        },
        diverges ? SubAxisSet{0b1} : SubAxisSet{0});
    for (const LocalId id : out) b.result(id);
  }

  LocalBuilder& b;
  Random& r;
};

std::vector<float> special_values(Random& random, size_t count) {
  const std::vector<float> special = {0.0F,
                                      -0.0F,
                                      1e-42F,
                                      std::numeric_limits<float>::infinity(),
                                      -std::numeric_limits<float>::infinity(),
                                      std::numeric_limits<float>::quiet_NaN(),
                                      3e38F,
                                      -1.5F};
  std::vector<float> out(count);
  for (float& value : out)
    value = below(random, 4) == 0 ? any_of(random, special) : std::normal_distribution<float>(0, 2)(random);
  return out;
}

TEST(EngineSmallWhile, random_loops_give_the_bytes_of_single_steps) {
  int64_t found = 0;
  int64_t coded = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    Random random(seed);
    const size_t devices = any_of<size_t>(random, {1, 1, 4});
    const size_t lanes = any_of<size_t>(random, {1, 3, 16, 17, 63, 64, 65, 200, 1000, 4096});
    const bool is_sharded = devices > 1 && below(random, 2) == 0;
    const size_t vectors = 1 + below(random, 3);
    LocalBuilder b({static_cast<int64_t>(devices)});
    RandomLoop loop(b, random);
    const size_t shards = is_sharded ? devices : 1;
    const auto iterations = static_cast<int32_t>(any_of<size_t>(random, {0, 1, 2, 7, 1000}));
    const bool diverges = is_sharded && below(random, 2) == 0;
    loop.make(std::to_string(lanes * shards) + "xf32",
              is_sharded ? std::vector<std::vector<int>>{{0}} : std::vector<std::vector<int>>{{}}, vectors, iterations,
              diverges);
    const auto fast = plan_with(b, Loops::kInterpreted);
    const auto code = plan_with(b, Loops::kCode);
    const auto plain = plan_with(b, Loops::kSteps);
    EXPECT_EQ(small_whiles_in(*plain), 0);
    found += small_whiles_in(*fast);
    coded += coded_in(*code);
    EXPECT_EQ(coded_in(*fast), 0);
    Bench bench;
    std::vector<std::vector<std::vector<float>>> values;
    for (size_t i = 0; i < vectors; ++i) {
      values.emplace_back();
      for (size_t shard = 0; shard < shards; ++shard) values.back().push_back(special_values(random, lanes));
    }
    values.push_back({{0.25F}});
    const auto run = [&](const compile::PlanRef& plan) {
      std::vector<device::RunArgument> arguments;
      for (const auto& value : values) arguments.push_back(bench.shards<float>(value));
      return bench.run(plan, std::move(arguments));
    };
    const auto got = run(fast);
    const auto expected = run(plain);
    EXPECT_EQ(all_bytes(got), all_bytes(expected)) << "seed " << seed << "\n" << to_text(*fast);
    const auto by_code = run(code);
    EXPECT_EQ(all_bytes(by_code), all_bytes(expected)) << "code, seed " << seed << "\n" << to_text(*code);
    EXPECT_EQ(by_code.stats.steps, got.stats.steps) << "seed " << seed;
    if (!diverges) {
      EXPECT_EQ(got.stats.steps, expected.stats.steps) << "seed " << seed;
    }
  }
  EXPECT_GT(found, 140);
  EXPECT_TRUE(coded > 40 || kernels::cpu_level() == kernels::CpuLevel::kBase) << coded;
}

// while (i < n) { i += 1; x = sin(x) } with n an argument.
compile::PlanRef counting_plan(Loops loops) {
  LocalBuilder b({1});
  const LocalId n = b.argument("i32");
  const LocalId x = b.argument("16xf32");
  const auto out = b.loop(
      {b.splat<int32_t>("i32", 0), x}, [&](const auto& v) { return b.compare("LT", v[0], n); },
      [&](const auto& v) {
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}),
                                    b.point("stablehlo.sine", {v[1]})};
      });
  b.result(out[0]);
  b.result(out[1]);
  return plan_with(b, loops);
}

device::RunRequest counting_request(Bench& bench, const compile::PlanRef& plan, int32_t n) {
  device::RunRequest request;
  request.plan = plan;
  request.arguments = {bench.shards<int32_t>({{n}}), bench.shards<float>({std::vector<float>(16, 0.5F)})};
  return request;
}

TEST(EngineSmallWhile, budgets_end_it_at_the_same_step) {
  const auto fast = counting_plan(Loops::kCode);
  const auto plain = counting_plan(Loops::kSteps);
  ASSERT_EQ(small_whiles_in(*fast), 1);
  Bench bench;
  const auto compare = [&](int64_t steps, double operations) {
    const auto run = [&](const compile::PlanRef& plan) {
      auto request = counting_request(bench, plan, 100);
      request.step_budget = steps;
      request.operation_budget = operations;
      return bench.start(std::move(request))->wait();
    };
    const auto got = run(fast);
    const auto expected = run(plain);
    ASSERT_EQ(got.ok(), expected.ok()) << steps << " " << operations;
    EXPECT_EQ(got.stats.steps, expected.stats.steps) << steps << " " << operations;
    if (expected.error) {
      EXPECT_EQ(got.error->detail(), expected.error->detail());
    }
  };
  for (const int64_t steps : {1, 2, 3, 4, 5, 399, 400, 401, 402, 403, 404, 405, 100'000}) compare(steps, 0);
  for (const double operations : {1.0, 1e3, 1e4, 2e4, 3e4, 1e9}) compare(0, operations);
}

// Values of several blocks of lanes: a loop of these where each lane needs others is executed step by step.
TEST(EngineSmallWhile, lanes_of_several_blocks_do_not_need_each_other) {
  const auto plan = [](const std::string& type, const std::string& op, ir::AttributeList attributes) {
    LocalBuilder b({1});
    const LocalId x = b.argument(type);
    const LocalId limit = b.splat<int32_t>("i32", 3);
    const auto out = b.loop(
        {b.splat<int32_t>("i32", 0), x}, [&](const auto& v) { return b.compare("LT", v[0], limit); },
        [&](const auto& v) {
          const LocalId other = b.like(v[1]);
          b.op(op, {v[1]}, {other}, attributes);
          return std::vector<LocalId>{b.point("stablehlo.add", {v[0], b.splat<int32_t>("i32", 1)}),
                                      b.point("stablehlo.subtract", {v[1], other})};
        });
    b.result(out[1]);
    return plan_with(b, Loops::kCode);
  };
  EXPECT_EQ(small_whiles_in(*plan("1000xf32", "stablehlo.sine", {})), 1);
  EXPECT_EQ(small_whiles_in(*plan("10x100xf32", "stablehlo.sine", {})), 1);
  EXPECT_EQ(small_whiles_in(*plan("5000xf32", "stablehlo.sine", {})), 0) << "worth threads";
  const ir::AttributeList reversed = {{"dimensions", attribute(ir::IntArrayAttr{{0}, "i64"})}};
  EXPECT_EQ(small_whiles_in(*plan("1000xf32", "stablehlo.reverse", reversed)), 0);
}

// while (x[k] < 9) { s = s + x[k]; x = x + 1 }: one lane of several blocks decides for all of them.
TEST(EngineSmallWhile, one_lane_of_a_longer_value_is_read_wherever_it_is) {
  for (const int64_t lanes : {1, 40, 64, 65, 128, 1000, 4096}) {
    for (const int64_t k : {int64_t{0}, lanes / 2, lanes - 1}) {
      for (const bool in_condition : {false, true}) {
        const auto plan = [&](Loops loops) {
          LocalBuilder b({1});
          const LocalId x = b.argument(std::to_string(lanes) + "xf32");
          const LocalId start = b.argument("f32");
          const LocalId limit = b.splat<float>("f32", 9);
          const auto lane = [&](LocalId of) {
            const LocalId one = b.value("1xf32");
            b.op("stablehlo.slice", {of}, {one},
                 {{"start_indices", attribute(ir::IntArrayAttr{{k}, "i64"})},
                  {"limit_indices", attribute(ir::IntArrayAttr{{k + 1}, "i64"})},
                  {"strides", attribute(ir::IntArrayAttr{{1}, "i64"})}});
            const LocalId out = b.value("f32");
            b.op("stablehlo.reshape", {one}, {out});
            return out;
          };
          const auto out = b.loop(
              {start, x}, [&](const auto& v) { return b.compare("LT", in_condition ? lane(v[1]) : v[0], limit); },
              [&](const auto& v) {
                const LocalId ones = b.splat<float>(std::to_string(lanes) + "xf32", 1);
                return std::vector<LocalId>{b.point("stablehlo.add", {v[0], lane(v[1])}),
                                            b.point("stablehlo.add", {v[1], ones})};
              });
          b.result(out[0]);
          b.result(out[1]);
          return plan_with(b, loops);
        };
        std::vector<float> values(static_cast<size_t>(lanes));
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
        Bench bench;
        const auto run = [&](Loops loops) {
          std::vector<device::RunArgument> arguments = {bench.shards<float>({values}), bench.shards<float>({{0.5F}})};
          return all_bytes(bench.run(plan(loops), std::move(arguments)));
        };
        const auto expected = run(Loops::kSteps);
        EXPECT_EQ(run(Loops::kInterpreted), expected) << lanes << " lanes, lane " << k;
        EXPECT_EQ(run(Loops::kCode), expected) << lanes << " lanes, lane " << k;
      }
    }
  }
}

TEST(EngineSmallWhile, shares_its_device_and_goes_on_where_it_was) {
  const auto plan = counting_plan(Loops::kCode);
  Bench bench({.device_count = 1, .threads = 1});
  constexpr int32_t kIterations = 2'000'000;
  const auto alone = bench.start(counting_request(bench, plan, kIterations))->wait();
  const auto first = bench.start(counting_request(bench, plan, kIterations));
  const auto second = bench.start(counting_request(bench, plan, kIterations));
  EXPECT_EQ(all_bytes(first->wait()), all_bytes(alone));
  EXPECT_EQ(all_bytes(second->wait()), all_bytes(alone));
}

TEST(EngineSmallWhile, loop_inside_of_a_loop) {
  // for i < 5: x = x + 1; for j < 7: x = x * 0.5 + i
  LocalBuilder b({1});
  const LocalId x = b.argument("4xf32");
  const LocalId zero = b.splat<int32_t>("i32", 0);
  const LocalId one = b.splat<int32_t>("i32", 1);
  const LocalId half = b.splat<float>("4xf32", 0.5F);
  const auto out = b.loop(
      {zero, x}, [&](const auto& v) { return b.compare("LT", v[0], b.splat<int32_t>("i32", 5)); },
      [&](const auto& v) {
        const LocalId i = b.like(v[1]);
        const LocalId number = b.value("f32");
        b.op("stablehlo.convert", {v[0]}, {number});
        b.op("stablehlo.broadcast_in_dim", {number}, {i},
             {{"broadcast_dimensions", attribute(ir::IntArrayAttr{{}, "i64"})}});
        const auto inner = b.loop(
            {zero, b.point("stablehlo.add", {v[1], b.splat<float>("4xf32", 1)})},
            [&](const auto& w) { return b.compare("LT", w[0], b.splat<int32_t>("i32", 7)); },
            [&](const auto& w) {
              return std::vector<LocalId>{b.point("stablehlo.add", {w[0], one}),
                                          b.point("stablehlo.add", {b.point("stablehlo.multiply", {w[1], half}), i})};
            });
        return std::vector<LocalId>{b.point("stablehlo.add", {v[0], one}), inner[1]};
      });
  b.result(out[1]);
  const auto plan = plan_with(b, Loops::kCode);
  EXPECT_EQ(small_whiles_in(*plan), 1);
  Bench bench;
  float value = 3;
  for (int i = 0; i < 5; ++i) {
    value += 1;
    for (int j = 0; j < 7; ++j) value = value * 0.5F + static_cast<float>(i);
  }
  EXPECT_EQ(output<float>(bench.run(plan, {bench.shards<float>({{3, 3, 3, 3}})}))[0], std::vector<float>(4, value));
}

}  // namespace
}  // namespace meshd::test
