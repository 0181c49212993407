// What an explanation says: moves and their bytes, who decided, what does not divide, what would be cheaper.
#include <gtest/gtest.h>

#include <map>

#include "service/compile/explain/snapshots.h"
#include "service/compile/explain/suggest.h"

#include "tests/unit/compile/explain_support.h"

namespace meshd::compile {
namespace {

using partition::MoveCause;
using partition::MoveKind;

// One argument in one sharding, given back in another.
std::string moved(const std::string& from, const std::string& to) {
  return kMesh + "func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, " + from +
         ">}) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, " + to + ">}) { return %a : tensor<8x16xf32> }";
}

struct Way {
  const char *from, *to;
  MoveKind kind;
  const char* axes;
  int64_t bytes;
};

TEST(Moves, bytes_are_what_a_device_receives) {
  const Way ways[] = {
      {R"([{"x"}, {}])", "[{}, {}]", MoveKind::kAllGather, R"({"x"})", 512 - 256},
      {R"([{}, {}])", R"([{}, {"y"}])", MoveKind::kAllSlice, R"({"y"})", 0},
      {R"([{"x"}, {}])", R"([{}, {"x"}])", MoveKind::kAllToAll, R"({"x"})", 256 - 128},
      {R"([{"y"}, {}])", R"([{}, {"y"}])", MoveKind::kAllToAll, R"({"y"})", 128 - 32},
      {R"([{"x", "y"}, {}])", R"([{"y", "x"}, {}])", MoveKind::kCollectivePermute, R"({"x", "y"})", 64},
      {R"([{"x", "y"}, {}])", R"([{"x"}, {}])", MoveKind::kAllGather, R"({"y"})", 256 - 64},
  };
  for (const Way& way : ways) {
    const Explanation told = explained(moved(way.from, way.to));
    ASSERT_EQ(told.moves.size(), 1u) << way.from << way.to;
    EXPECT_EQ(told.moves[0].move.kind, way.kind) << way.from << way.to << partition::name(told.moves[0].move.kind);
    EXPECT_EQ(told.moves[0].axes, way.axes);
    EXPECT_EQ(told.moves[0].move.bytes, way.bytes) << way.from << way.to;
    EXPECT_TRUE(told.moves[0].of_argument);
    EXPECT_EQ(told.moves[0].from, "@mesh, " + std::string(way.from));
  }
}

// 8x16 . 16x8 with the contracted dimension cut by x.
std::string product(const std::string& result) {
  return kMesh +
         R"(func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, )" +
         result + R"(>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
})";
}

TEST(Traffic, bytes_are_what_processes_send_each_other) {
  // Devices 0 to 3 have the first half of the contracted dimension, 4 to 7 the other.
  const Explanation told = explained(product("[{}, {}]"), false);
  const std::vector<int> halves = {0, 0, 0, 0, 1, 1, 1, 1};
  const Traffic traffic = find_traffic(*told.plan, halves);
  EXPECT_EQ(traffic.steps, 2 * 256) << "each needs the other's 8x8 partial sums";
  EXPECT_EQ(traffic.arguments, 2 * 256) << "of both arguments, the half that is on devices 4 to 7";
  EXPECT_EQ(traffic.results, 0);
  ASSERT_EQ(told.moves.size(), 1u);
  EXPECT_EQ(traffic.of_move.at({told.moves[0].move.from, told.moves[0].move.to}), 2 * 256);
  int64_t of_steps = 0;
  for (const int64_t bytes : traffic.of_step) of_steps += bytes;
  EXPECT_EQ(of_steps, traffic.steps);
  // Each process has devices of both halves.
  const Traffic inside = find_traffic(*told.plan, std::vector<int>{0, 0, 1, 1, 0, 0, 1, 1});
  EXPECT_EQ(inside.steps, 0);
  EXPECT_EQ(inside.arguments, 4 * 256) << "process 1 holds all shards, too";
  // A large sum is made in parts: each process sends half of its operand, and half of the result.
  const Explanation large = explained(
      kMesh +
      R"(func.func @main(%a: tensor<2x524288xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<524288xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x524288xf32>, tensor<f32>) -> tensor<524288xf32>
  return %0 : tensor<524288xf32>
})");
  EXPECT_EQ(find_traffic(*large.plan, halves).steps, 2 * (int64_t{2} << 20));
}

TEST(Moves, cut_reduction_is_an_all_reduce_of_its_op) {
  const Explanation told = explained(product("[{}, {}]"));
  ASSERT_EQ(told.moves.size(), 1u);
  const ExplainedMove& move = told.moves[0];
  EXPECT_EQ(move.move.kind, MoveKind::kAllReduce);
  EXPECT_EQ(move.move.bytes, 2 * (256 - 128));
  EXPECT_EQ(move.axes, "{\"x\"}");
  EXPECT_EQ(move.of_line, 5);
  EXPECT_EQ(move.move.location.line, 5);
}

TEST(Moves, reduction_whose_users_cut_it_is_a_reduce_scatter) {
  const Explanation told = explained(product(R"([{"x"}, {}])"));
  int64_t bytes = 0;
  for (const ExplainedMove& move : told.moves) bytes += move.move.bytes;
  ASSERT_FALSE(told.moves.empty());
  EXPECT_EQ(told.moves[0].move.kind, MoveKind::kReduceScatter);
  EXPECT_EQ(bytes, 256 - 128);
}

TEST(Moves, operations_are_those_of_one_device) {
  const double whole = explained(product("[{}, {}]")).flops();
  EXPECT_NEAR(whole, 2 * 8 * 16 * 8 / 2, 128);
}

TEST(Moves, neighbours_are_told_apart) {
  const Explanation told = explained(
      kMesh +
      R"(func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<6x16xf32> {
  %0 = stablehlo.slice %a [1:7, 0:16] : (tensor<8x16xf32>) -> tensor<6x16xf32>
  return %0 : tensor<6x16xf32>
})");
  const auto gathers = std::count_if(told.moves.begin(), told.moves.end(), [](const ExplainedMove& move) {
    return move.move.bytes > 0 && move.move.cause != MoveCause::kNeighbours;
  });
  EXPECT_EQ(gathers, 0);
}

TEST(Indivisible, uneven_dimension_is_padded_and_the_nearest_specs_divide) {
  const Explanation told = explained(
      kMesh + R"(func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<6xf32> {
  %0 = stablehlo.negate %a : tensor<6xf32>
  return %0 : tensor<6xf32>
})");
  ASSERT_EQ(told.indivisible.size(), 1u);
  const Indivisible& one = told.indivisible[0];
  EXPECT_EQ(one.value, "%a");
  EXPECT_EQ(one.size, 6);
  EXPECT_EQ(one.ways, 4);
  EXPECT_TRUE(one.is_sharded);
  ASSERT_EQ(one.nearest.size(), 1u);
  EXPECT_EQ(one.nearest[0].axes, "{\"x\"}");
  EXPECT_EQ(one.nearest_sizes, (std::vector<int64_t>{4, 8}));
}

TEST(Indivisible, factor_of_a_reshape_stays_whole) {
  const Explanation told = explained(
      kMesh +
      R"(func.func @main(%a: tensor<3x8xf32>) -> (tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %0 = stablehlo.reshape %a : (tensor<3x8xf32>) -> tensor<24xf32>
  return %0 : tensor<24xf32>
})");
  const auto found = std::find_if(told.indivisible.begin(), told.indivisible.end(),
                                  [](const Indivisible& one) { return !one.is_sharded; });
  ASSERT_NE(found, told.indivisible.end());
  EXPECT_EQ(found->value, "%a");
  EXPECT_EQ(found->size, 3);
  EXPECT_EQ(found->op, "stablehlo.reshape");
}

TEST(Explain, callees_have_their_own_moves_and_copies_are_counted_once_each) {
  const Explanation told = explained(
      kMesh +
      R"(func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
  %0 = func.call @f(%a) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.tanh %0 : tensor<8x16xf32>
  %2 = func.call @f(%1) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
func.func private @f(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{}, {"x"}]> : tensor<8x16xf32>
  %2 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %less = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = sdy.sharding_constraint %2 <@mesh, [{"x"}, {}]> : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
})");
  ASSERT_EQ(told.functions.size(), 2u);
  EXPECT_EQ(told.functions[1].name, "f");
  EXPECT_EQ(told.functions[1].calls, (std::vector<std::vector<int32_t>>{{3}, {5}}));
  int64_t first = 0;
  int64_t again = 0;
  for (const ExplainedMove& move : told.moves) {
    EXPECT_EQ(move.function, 1u);
    (move.is_again ? again : first) += move.move.bytes;
  }
  EXPECT_GT(first, 0);
  EXPECT_EQ(again, first);
}

TEST(Suggest, names_a_cut_that_needs_no_moves) {
  const ParsedRef program =
      parsed(kMesh + R"(func.func @main(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
})");
  const Suggestions found = suggest(program, request_for(*program), 1, [] { return false; });
  ASSERT_FALSE(found.better.empty());
  EXPECT_LT(found.better[0].cost.flops, found.now.flops / 4);
  EXPECT_FALSE(found.better[0].reasons.empty());
  for (size_t i = 1; i < found.better.size(); ++i)
    EXPECT_LE(found.better[i - 1].cost.seconds(), found.better[i].cost.seconds());
  const Suggestions none = suggest(program, request_for(*program), 1, [] { return true; });
  EXPECT_TRUE(none.is_incomplete);
  EXPECT_EQ(none.tried, 0);
}

TEST(Snapshots, names_are_read_once_and_in_the_order_of_the_stages) {
  EXPECT_EQ(read_stage_names("partition,parse,partition"), (std::vector<std::string_view>{"parse", "partition"}));
  EXPECT_EQ(read_stage_names("all").size(), 10U);
  EXPECT_EQ(read_stage_names("all").front(), "parse");
  EXPECT_EQ(read_stage_names("all").back(), "plan");
  for (const char* wrong : {"", "plan,", "fusion"}) {
    try {
      read_stage_names(wrong);
      FAIL() << wrong;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code().word(), "invalid_query");
    }
  }
}

TEST(Snapshots, each_stage_shows_what_it_did) {
  const std::string text = kMesh + R"(func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[8]<=[8]}"}) -> tensor<8xf32> {
  %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.reduce_precision %0, format = e5m10 : tensor<8xf32>
  return %1 : tensor<8xf32>
})";
  const Explanation told = explained(text);
  std::map<std::string_view, std::string> texts;
  for (const Snapshot& each : snapshots(told, request_for(*told.parsed), read_stage_names("all"))) {
    EXPECT_FALSE(each.is_truncated);
    EXPECT_EQ(each.bytes, each.text.size());
    texts[each.name] = each.text;
  }
  ASSERT_EQ(texts.size(), 10U);
  const auto has = [&](std::string_view stage, const char* what) {
    return texts.at(stage).find(what) != std::string::npos;
  };
  EXPECT_TRUE(has("parse", "mhlo.sharding")) << texts["parse"];
  EXPECT_FALSE(has("import_gspmd", "mhlo.sharding")) << texts["import_gspmd"];
  EXPECT_TRUE(has("import_gspmd", "func.call"));
  EXPECT_FALSE(has("inline_calls", "func.call")) << texts["inline_calls"];
  EXPECT_FALSE(has("specialise", "\"stablehlo.negate\"(%arg0) {sdy.sharding")) << texts["specialise"];
  EXPECT_TRUE(has("propagate", "\"stablehlo.negate\"(%arg0) {sdy.sharding")) << texts["propagate"];
  EXPECT_TRUE(has("partition", "stablehlo.negate")) << texts["partition"];
  EXPECT_TRUE(has("plan", "fused")) << texts["plan"];
}

TEST(Snapshots, long_texts_end_with_a_whole_line) {
  std::string text = kMesh + "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n";
  constexpr int kOps = 20'000;
  for (int i = 0; i < kOps; ++i) {
    text += "  %" + std::to_string(i) + " = stablehlo.negate " + (i == 0 ? "%a" : "%" + std::to_string(i - 1)) +
            " : tensor<8xf32>\n";
  }
  text += "  return %" + std::to_string(kOps - 1) + " : tensor<8xf32>\n}";
  const Explanation told = explained(text);
  const std::vector<Snapshot> made = snapshots(told, request_for(*told.parsed), {"parse"});
  ASSERT_EQ(made.size(), 1U);
  EXPECT_TRUE(made[0].is_truncated);
  EXPECT_LE(made[0].text.size(), kMostSnapshotBytes);
  EXPECT_GT(made[0].bytes, kMostSnapshotBytes);
  EXPECT_EQ(made[0].text.back(), '\n');
}

}  // namespace
}  // namespace meshd::compile
