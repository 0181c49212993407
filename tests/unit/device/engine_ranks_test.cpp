// Two processes in one: engines that own some devices each and talk through a transport give what one engine gives.
#include <array>

#include "service/device/local_arena.h"
#include "tests/support/loopback_transport.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

using Shards = std::vector<std::vector<float>>;

class TwoRanks {
 public:
  explicit TwoRanks(std::vector<int> rank_of_device) : rank_of_device_(std::move(rank_of_device)) {
    const auto ends = testing::make_loopback(2);
    for (int rank = 0; rank < 2; ++rank) {
      device::EngineOptions options;
      options.device_count = static_cast<int64_t>(rank_of_device_.size());
      options.threads = 1;
      options.process_of_device = rank_of_device_;
      options.rank = rank;
      options.transport = ends[static_cast<size_t>(rank)];
      benches_.push_back(std::make_unique<Bench>(std::move(options)));
    }
  }

  // Runs on both; each rank gets the shards that its devices hold. Gives every shard of every result, from whoever has
  // it.
  template <typename T>
  std::vector<std::vector<std::vector<T>>> run(const compile::PlanRef& plan, const std::vector<Shards>& arguments,
                                               std::vector<device::EffectSink*> sinks = {nullptr, nullptr}) {
    std::vector<std::shared_ptr<Bench::Pending>> pending;
    ++key_;
    for (int rank = 0; rank < 2; ++rank) {
      Bench& bench = *benches_[static_cast<size_t>(rank)];
      device::RunRequest request;
      request.plan = plan;
      request.key = key_;
      request.effects = sinks[static_cast<size_t>(rank)];
      for (size_t i = 0; i < arguments.size(); ++i) {
        device::RunArgument argument = bench.shards<float>(arguments[i]);
        for (size_t shard = 0; shard < argument.shards.size(); ++shard) {
          if (!holds(*plan, plan->arguments[i].table, static_cast<int64_t>(shard), rank))
            argument.shards[shard] = nullptr;
        }
        request.arguments.push_back(std::move(argument));
      }
      pending.push_back(bench.start(std::move(request)));
    }
    std::vector<std::vector<std::vector<T>>> out(plan->results.size());
    for (int rank = 0; rank < 2; ++rank) {
      const device::RunOutcome outcome = pending[static_cast<size_t>(rank)]->wait();
      EXPECT_TRUE(outcome.ok()) << (outcome.error ? outcome.error->detail() : "");
      messages += outcome.stats.messages;
      for (size_t r = 0; r < outcome.outputs.size(); ++r) {
        out[r].resize(outcome.outputs[r].size());
        for (size_t shard = 0; shard < out[r].size(); ++shard) {
          const bool is_mine = holds(*plan, plan->results[r].table, static_cast<int64_t>(shard), rank);
          if (!is_mine) continue;
          auto values = values_of<T>(outcome.outputs[r][shard]);
          if (!out[r][shard].empty()) {
            EXPECT_EQ(out[r][shard], values) << "ranks disagree";
          }
          out[r][shard] = std::move(values);
        }
      }
    }
    return out;
  }

  int64_t messages = 0;

 private:
  [[nodiscard]] bool holds(const compile::Plan& plan, compile::TableId table, int64_t shard, int rank) const {
    for (size_t device = 0; device < rank_of_device_.size(); ++device) {
      if (rank_of_device_[device] == rank && plan.table(table).shard_of_device[device] == shard) return true;
    }
    return false;
  }

  std::vector<int> rank_of_device_;
  std::vector<std::unique_ptr<Bench>> benches_;
  uint64_t key_ = 0;
};

template <typename T>
void expect_same(LocalBuilder& b, const std::vector<Shards>& arguments) {
  const auto plan = plan_of(b, 2, true, false);
  Bench alone;
  std::vector<device::RunArgument> bound;
  for (const Shards& argument : arguments) bound.push_back(alone.shards<float>(argument));
  const auto one = alone.run(plan, bound);
  for (const std::vector<int>& ranks :
       {std::vector<int>{0, 0, 1, 1}, std::vector<int>{1, 0, 1, 0}, std::vector<int>{0, 0, 0, 1}}) {
    TwoRanks two(ranks);
    const auto got = two.run<T>(plan, arguments);
    for (size_t r = 0; r < got.size(); ++r) EXPECT_EQ(got[r], output<T>(one, r)) << "result " << r;
    EXPECT_GT(two.messages, 0);
  }
}

TEST(EngineRanks, reshards_send_blocks) {
  LocalBuilder b({2, 2});
  const LocalId x = b.argument("6x4xf32", {{0, 1}, {}});
  b.result(b.reshard(x, {{}, {1}}));
  b.result(b.reshard(x, {{1}, {0}}));
  b.result(b.reshard(x, {{}, {}}));
  expect_same<float>(b, {counted_shards(4, 8)});
}

// The second dimension of arrays of 3 columns: nobody fetches along it.
partition::HaloDim columns() { return {.part_step = 3, .end = 3}; }

TEST(EngineRanks, halo_exchanges_send_rows) {
  LocalBuilder b({4});
  const LocalId x = b.argument("8x3xf32", {{0}, {}});
  const LocalId y = b.argument("12x3xf32", {{0}, {}});
  const LocalId fill = b.splat<float>("f32", -1.0f);
  const auto exchange = [&](std::string_view result, std::vector<LocalId> from, std::vector<partition::HaloDim> rows) {
    const LocalId out = b.value(result, {{0}, {}});
    LocalOp& op = b.add(LocalKind::kHalo, "halo_exchange", std::move(from), {out});
    for (const partition::HaloDim& dim : rows) op.halos.push_back({dim, columns()});
    b.result(out);
  };
  exchange("16x3xf32", {x, fill}, {{.start = -1, .part_step = 2, .end = 8}});               // windows of 4 rows
  exchange("16x3xf32", {x, fill}, {{.start = -1, .part_step = 4, .spread = 2, .end = 8}});  // holes between rows
  exchange("4x3xf32", {x}, {{.start = 7, .part_step = -2, .row_step = -2, .end = 8}});      // each second, reversed
  exchange("20x3xf32", {x, y},
           {{.part_step = 5, .end = 8}, {.start = -8, .part_step = 5, .end = 12}});  // one, then another
  expect_same<float>(b, {counted_shards(4, 6), counted_shards(4, 9)});
}

TEST(EngineRanks, reductions_have_the_same_bits) {
  LocalBuilder b({2, 2});
  const LocalId x = b.argument("5xf32", {}, 0b11);
  b.result(b.reduce_shards(x, 0b01));
  b.result(b.reduce_shards(x, 0b10));
  b.result(b.reduce_shards(x, 0b11));
  expect_same<float>(b, {counted_shards(4, 5)});
}

TEST(EngineRanks, large_reductions_are_made_in_parts_with_the_same_bits) {
  // 2 MiB on each device, of which no part begins where another one's does.
  LocalBuilder b({2, 2});
  const LocalId x = b.argument("500009xf32", {}, 0b11);
  b.result(b.reduce_shards(x, 0b01));
  b.result(b.reduce_shards(x, 0b11));
  b.result(b.point("stablehlo.negate", {b.reduce_shards(b.point("stablehlo.negate", {x}), 0b11)}));
  expect_same<float>(b, {counted_shards(4, 500009)});
}

TEST(EngineRanks, shards_that_another_rank_has_are_sent_to_who_reads_them) {
  LocalBuilder b({2, 2});
  const LocalId x = b.argument("3xf32", {}, 0b11);
  for (const sharding::SubAxisSet kept : {0b00, 0b01, 0b10}) b.result(b.reshard(x, {{}}, kept));
  expect_same<float>(b, {counted_shards(4, 3)});
}

TEST(EngineRanks, each_rank_has_an_arena_for_its_own_devices) {
  LocalBuilder b({4});
  const LocalId x = b.argument("4096xf32", {{0}});
  LocalId y = x;
  for (int i = 0; i < 3; ++i) y = b.point("stablehlo.tanh", {b.reshard(b.reshard(y, {{}}), {{0}})});
  b.result(y);
  const auto plan = plan_of(b, 1, false, false);
  device::Ownership owners{.rank_of_device = {0, 0, 0, 1}, .rank = 0, .is_alone = false, .is_member = true};
  const auto ranges = [&](const device::LocalArena& arena) {
    std::vector<std::array<int64_t, 4>> out;  // where it is in the plan's arena, and here
    for (const compile::Slot& slot : plan->slots) {
      if (slot.storage != compile::Storage::kArena) continue;
      for (int64_t shard = 0; shard < plan->table(slot.table).count(); ++shard) {
        const int64_t at = arena.offsets[static_cast<size_t>(slot.first_pointer + shard)];
        if (at < 0) continue;
        const int64_t before = slot.offset + shard * slot.stride;
        EXPECT_EQ(at % 64, 0);
        EXPECT_LE(at + slot.stride, arena.bytes);
        out.push_back({before, before + slot.stride, at, at + slot.stride});
      }
    }
    return out;
  };
  int64_t smallest = plan->memory.arena;
  for (const int rank : {0, 1}) {
    owners.rank = rank;
    const device::LocalArena arena = device::local_arena(*plan, owners);
    EXPECT_LE(arena.bytes, plan->memory.arena);
    EXPECT_LE(arena.planned_bytes, plan->peak_bytes);
    const auto all_ranges = ranges(arena);
    EXPECT_FALSE(all_ranges.empty());
    for (const auto& one : all_ranges) {
      for (const auto& other : all_ranges) {
        const bool met = one[0] < other[1] && other[0] < one[1];
        const bool meet = one[2] < other[3] && other[2] < one[3];
        EXPECT_EQ(met, meet) << "what shares memory in the plan does here, and nothing else";
      }
    }
    smallest = std::min(smallest, arena.bytes);
  }
  EXPECT_LT(smallest, plan->memory.arena) << "that of the one device\n" << to_text(*plan);
}

TEST(EngineRanks, collectives_of_the_text) {
  LocalBuilder b({4});
  const LocalId x = b.argument("4xf32", {}, 0b1);
  const LocalId out = b.like(x);
  LocalOp& all_to_all = b.add(LocalKind::kGroup, "stablehlo.all_to_all", {x}, {out});
  all_to_all.def = ops::find_op("stablehlo.all_to_all");
  all_to_all.attributes = {{"split_dimension", attribute(ir::IntegerAttr{0, "i64"})},
                           {"concat_dimension", attribute(ir::IntegerAttr{0, "i64"})},
                           {"split_count", attribute(ir::IntegerAttr{2, "i64"})}};
  all_to_all.groups = {{0, 3}, {1, 2}};
  b.result(out);
  expect_same<float>(b, {counted_shards(4, 4)});
}

TEST(EngineRanks, loops_and_branches) {
  LocalBuilder b({4});
  nested_program(b, 3);
  expect_same<float>(b, {counted_shards(4, 8)});
}

TEST(EngineRanks, devices_that_leave_a_loop_one_by_one) {
  LocalBuilder b({4});
  diverging_program(b);
  b.program.results.erase(b.program.results.begin());
  b.program.body.results.erase(b.program.body.results.begin());
  expect_same<float>(b, {counted_shards(4, 1)});
}

class Answers final : public device::EffectSink {
 public:
  device::EffectResult emit(const device::EffectCall& call) override {
    ++count;
    visits.push_back(call.visit);
    std::vector<std::vector<std::byte>> results;
    for (const tensor::TensorType& type : call.results) {
      results.push_back(bytes_of(std::vector<float>(static_cast<size_t>(tensor::element_count(type)), 42)));
    }
    return device::EffectResult::done(std::move(results));
  }
  int count = 0;
  std::vector<int64_t> visits;
};

TEST(EngineRanks, effect_on_the_whole_happens_on_one_rank_and_all_have_its_answer) {
  LocalBuilder b({2});
  const LocalId x = b.argument("2xf32", {{0}});
  const LocalId whole = b.reshard(x, {{}});
  const LocalId answer = b.like(whole);
  b.effect({whole}, {answer}, false);
  b.result(b.point("stablehlo.add", {b.reshard(answer, {{0}}), x}));
  const auto plan = plan_of(b);
  TwoRanks two({0, 1});
  Answers first;
  Answers second;
  EXPECT_EQ(two.run<float>(plan, {{{1}, {2}}}, {&first, &second})[0], (Shards{{43}, {44}}));
  EXPECT_EQ(first.count, 1);
  EXPECT_EQ(second.count, 0);
}

TEST(EngineRanks, effects_of_all_ranks_have_numbers_of_one_order) {
  LocalBuilder b({4});
  const LocalId x = b.argument("4xf32", {{0}});
  b.effect({x}, {}, true);
  b.effect({b.reshard(x, {{}})}, {}, false);
  b.effect({x}, {}, true);
  b.result(x);
  TwoRanks two({0, 1, 1, 0});
  Answers first;
  Answers second;
  two.run<float>(plan_of(b), {{{1}, {2}, {3}, {4}}}, {&first, &second});
  EXPECT_EQ(first.visits, (std::vector<int64_t>{0, 3, 4, 5, 8}));
  EXPECT_EQ(second.visits, (std::vector<int64_t>{1, 2, 6, 7}));
}

}  // namespace
}  // namespace meshd::test
