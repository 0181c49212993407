// The older notation of shardings, and programs that use it.
#include "service/program/gspmd_sharding.h"
#include "service/program/inline_calls.h"
#include "tests/unit/program_support.h"

namespace meshd::program {
namespace {

/// The strings over a mesh made for them, as Shardy says them.
std::vector<std::string> in_sdy(const std::vector<std::string>& texts, int64_t devices, int64_t rank) {
  std::vector<GspmdSharding> shardings;
  for (const std::string& text : texts) shardings.push_back(parse_gspmd(text).at(0));
  const auto mesh = std::make_shared<const mesh::Mesh>(gspmd_mesh(shardings, devices));
  std::vector<std::string> out{mesh::to_sdy(*mesh)};
  for (const GspmdSharding& sharding : shardings) out.push_back(to_sdy(to_sdy_sharding(sharding, "m", mesh, rank)));
  return out;
}

TEST(Gspmd, tiles_over_iota_devices) {
  EXPECT_EQ(
      in_sdy({"{devices=[4,2]<=[8]}", "{replicated}", "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"}, 8, 2),
      (std::vector<std::string>{"<[\"_axis_0\"=4, \"_axis_1\"=2]>", "@m, [{\"_axis_0\"}, {\"_axis_1\"}]",
                                "@m, [{}, {}]", "@m, [{}, {\"_axis_1\"}]"}));
}

TEST(Gspmd, transposed_devices_turn_the_axes) {
  EXPECT_EQ(in_sdy({"{devices=[2,4]<=[4,2]T(1,0)}", "{devices=[8,1]<=[4,2]T(1,0)}"}, 8, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=4, \"_axis_1\"=2]>", "@m, [{\"_axis_1\"}, {\"_axis_0\"}]",
                                      "@m, [{\"_axis_1\", \"_axis_0\"}, {}]"}));
  EXPECT_EQ(in_sdy({"{devices=[6,35]<=[7,10,3]T(2,1,0)}"}, 210, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=7, \"_axis_1\"=2, \"_axis_2\"=5, \"_axis_3\"=3]>",
                                      "@m, [{\"_axis_3\", \"_axis_1\"}, {\"_axis_2\", \"_axis_0\"}]"}));
}

TEST(Gspmd, different_cuts_need_finer_axes) {
  EXPECT_EQ(in_sdy({"{devices=[4,2]<=[8]}", "{devices=[2,4]<=[8]}"}, 8, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=2, \"_axis_1\"=2, \"_axis_2\"=2]>",
                                      "@m, [{\"_axis_0\", \"_axis_1\"}, {\"_axis_2\"}]",
                                      "@m, [{\"_axis_0\"}, {\"_axis_1\", \"_axis_2\"}]"}));
  EXPECT_THROW(in_sdy({"{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}"}, 6, 2), core::Error);
}

TEST(Gspmd, lists_of_devices_that_are_iotas) {
  EXPECT_EQ(in_sdy({"{devices=[2,2]0,1,2,3}", "{devices=[2,2]0,2,1,3}"}, 4, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=2, \"_axis_1\"=2]>", "@m, [{\"_axis_0\"}, {\"_axis_1\"}]",
                                      "@m, [{\"_axis_1\"}, {\"_axis_0\"}]"}));
  EXPECT_THROW(parse_gspmd("{devices=[4]0,1,3,2}"), core::Error);
}

TEST(Gspmd, other_kinds_and_groups) {
  EXPECT_EQ(parse_gspmd("{maximal device=3}").at(0).device, 3);
  EXPECT_EQ(parse_gspmd("{unknown shard_as 7}").at(0).group, 7);
  EXPECT_EQ(parse_gspmd("{{replicated}, {manual}}").size(), 2U);
  const GspmdSharding partial = parse_gspmd("{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}").at(0);
  EXPECT_EQ(gspmd_manual_axes(partial, gspmd_mesh({&partial, 1}, 8)), std::vector<std::string>{"_axis_0"});
  EXPECT_EQ(gspmd_manual_axes(parse_gspmd("{manual}").at(0), gspmd_mesh({&partial, 1}, 8)).size(), 2U);
}

TEST(Gspmd, wrong_strings_say_where) {
  for (const char* text : {"", "{", "{devices=[2,2]<=[2]}", "{devices=[2]<=[2]T(1)}", "{devices=[0]<=[0]}",
                           "{replicated} x", "{devices=[2]<=[2]", "{devices=[2]<=[2] last_tile_dims={other}}",
                           "{devices=[9999999999]<=[9999999999]}", "{maximal}"}) {
    EXPECT_THROW(parse_gspmd(text), core::Error) << text;
  }
}

TEST(GspmdPrograms, constraints_and_groups_become_shardys) {
  const ir::ModuleRef module = parse_stablehlo(R"(module attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%a: tensor<8x12xf32> {mhlo.sharding = "{devices=[4,2]<=[8]}"}) -> (tensor<8x12xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.custom_call @Sharding(%a) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"} : (tensor<8x12xf32>) -> tensor<8x12xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{unknown shard_as 3}"} : (tensor<8x12xf32>) -> tensor<8x12xf32>
    return %1 : tensor<8x12xf32>
  }
})");
  const ir::Function& main = module->main();
  EXPECT_EQ(to_sdy(*main.arguments[0].sharding), "@mesh, [{\"_axis_0\"}, {\"_axis_1\"}]");
  EXPECT_EQ(to_sdy(*main.results[0].sharding), "@mesh, [{}, {}]");
  ASSERT_EQ(main.body.ops.size(), 3U);
  EXPECT_EQ(main.body.ops[0].name, "sdy.sharding_constraint");
  EXPECT_EQ(to_sdy(ir::find(main.body.ops[0].attributes, "sharding")->as<ir::ShardingAttr>()->shardings[0]),
            "@mesh, [{\"_axis_1\"}, {?}]");
  EXPECT_EQ(main.body.ops[1].name, "sdy.sharding_group");
  EXPECT_EQ(ir::int_or(main.body.ops[1].attributes, "group_id", 0), 3);
  EXPECT_EQ(main.body.ops[2].operands[0], main.body.ops[0].results[0]);
  expect_round_trip(print_generic(*module));
}

constexpr const char* kShardMap = R"(module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<2xf32>
    %2 = call @body(%1) : (tensor<2xf32>) -> tensor<2xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<2xf32>) -> tensor<2xf32>
    %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<2xf32>) -> tensor<8xf32>
    return %4 : tensor<8xf32>
  }
  func.func private @body(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.negate %a : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
})";

TEST(GspmdPrograms, shard_map_becomes_a_manual_computation) {
  const ir::Module flat = inline_calls(*parse_stablehlo(kShardMap));
  const auto& ops = flat.main().body.ops;
  ASSERT_EQ(ops.size(), 3U);
  EXPECT_EQ(ops[1].name, "sdy.manual_computation");
  EXPECT_EQ(ops[1].regions[0].ops[0].name, "stablehlo.negate");
  EXPECT_EQ(ops[2].operands[0], ops[1].results[0]);
  EXPECT_EQ(ir::find(ops[1].attributes, "manual_axes")->as<ir::ArrayAttr>()->values.size(), 1U);
}

TEST(GspmdPrograms, local_values_that_escape_are_refused) {
  std::string text = kShardMap;
  const std::string from = "return %4 : tensor<8xf32>";
  text.replace(text.find(from), from.size(), "%5 = stablehlo.negate %2 : tensor<2xf32>\n    return %4 : tensor<8xf32>");
  EXPECT_EQ(refusal(text),
            "unsupported_attribute: line 8, column 5: a manual computation in the older notation is supported around "
            "one call, as "
            "jax.shard_map prints it");
}

}  // namespace
}  // namespace meshd::program
