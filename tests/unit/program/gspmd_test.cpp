// The older notation of shardings, and programs that use it.
#include "service/program/gspmd/gspmd_sharding.h"

#include <algorithm>

#include "service/program/transform/inline_calls.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

/// The strings over a mesh made for them, as Shardy says them.
std::vector<std::string> in_sdy(const std::vector<std::string>& texts, int64_t devices, int64_t rank) {
  std::vector<GspmdSharding> shardings;
  for (const std::string& text : texts) shardings.push_back(parse_gspmd(text).at(0));
  const std::vector<mesh::Mesh> meshes = gspmd_meshes(shardings, devices);
  if (meshes.size() != 1) return {std::to_string(meshes.size()) + " meshes"};
  const auto mesh = std::make_shared<const mesh::Mesh>(meshes[0]);
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
  EXPECT_EQ(in_sdy({"{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}"}, 6, 2), std::vector<std::string>{"2 meshes"});
}

TEST(Gspmd, lists_of_devices_that_are_iotas) {
  EXPECT_EQ(in_sdy({"{devices=[2,2]0,1,2,3}", "{devices=[2,2]0,2,1,3}"}, 4, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=2, \"_axis_1\"=2]>", "@m, [{\"_axis_0\"}, {\"_axis_1\"}]",
                                      "@m, [{\"_axis_1\"}, {\"_axis_0\"}]"}));
  EXPECT_EQ(in_sdy({"{devices=[4,2]0,4,2,6,1,5,3,7}"}, 8, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=2, \"_axis_1\"=2, \"_axis_2\"=2]>",
                                      "@m, [{\"_axis_2\", \"_axis_1\"}, {\"_axis_0\"}]"}));
}

TEST(Gspmd, other_orders_are_meshes_with_device_ids) {
  // A ring, and the same ring seen from its columns: one mesh.
  EXPECT_EQ(in_sdy({"{devices=[2,2]0,1,3,2}", "{devices=[2,2]0,3,1,2}"}, 4, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=2, \"_axis_1\"=2], device_ids=[0, 1, 3, 2]>",
                                      "@m, [{\"_axis_0\"}, {\"_axis_1\"}]", "@m, [{\"_axis_1\"}, {\"_axis_0\"}]"}));
  // Rows of three over a transposed list of two columns: no axis ends there.
  EXPECT_EQ(in_sdy({"{devices=[2,3]<=[2,3]T(1,0)}"}, 6, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=2, \"_axis_1\"=3], device_ids=[0, 3, 1, 4, 2, 5]>",
                                      "@m, [{\"_axis_0\"}, {\"_axis_1\"}]"}));
}

TEST(Gspmd, shardings_without_common_axes_get_meshes_of_their_own) {
  const std::vector<GspmdSharding> all = {
      parse_gspmd("{devices=[2,3]<=[6]}").at(0), parse_gspmd("{devices=[3,2]<=[6]}").at(0),
      parse_gspmd("{devices=[6]<=[2,3]T(1,0)}").at(0), parse_gspmd("{devices=[6]1,0,2,3,4,5}").at(0)};
  const std::vector<mesh::Mesh> meshes = gspmd_meshes(all, 6);
  ASSERT_EQ(meshes.size(), 3U);
  EXPECT_EQ(mesh::to_sdy(meshes[0]), "<[\"_axis_0\"=2, \"_axis_1\"=3]>");
  EXPECT_EQ(mesh::to_sdy(meshes[1]), "<[\"_axis_0\"=3, \"_axis_1\"=2]>");
  EXPECT_EQ(mesh::to_sdy(meshes[2]), "<[\"_axis_0\"=6], device_ids=[1, 0, 2, 3, 4, 5]>");
  EXPECT_TRUE(fits(all[2], meshes[0]));
  EXPECT_FALSE(fits(all[2], meshes[1]));
  EXPECT_FALSE(fits(all[3], meshes[0]));
  std::vector<GspmdSharding> many;
  for (int i = 1; i <= 18; ++i) {  // as many orders as no transposition brings together
    std::string list = "{devices=[19]";
    for (int k = 0; k < 19; ++k) list += (k > 0 ? "," : "") + std::to_string(k == 0 ? i : k <= i ? k - 1 : k);
    many.push_back(parse_gspmd(list + "}").at(0));
  }
  EXPECT_THROW(gspmd_meshes(many, 19), core::Error);
}

TEST(Gspmd, neighbours_in_an_iota_are_merged) {
  EXPECT_EQ(in_sdy({"{devices=[6,4]<=[4,1,2,3]T(2,3,0,1)}"}, 24, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=4, \"_axis_1\"=6]>", "@m, [{\"_axis_1\"}, {\"_axis_0\"}]"}));
  EXPECT_EQ(in_sdy({"{devices=[3,2]<=[2,1,3]}"}, 6, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=3, \"_axis_1\"=2]>", "@m, [{\"_axis_0\"}, {\"_axis_1\"}]"}));
}

TEST(Gspmd, words_come_in_any_order_and_metadata_is_read_over) {
  EXPECT_EQ(parse_gspmd("{device=3 maximal}").at(0).device, 3);
  EXPECT_EQ(parse_gspmd("{metadata={op_name=\"a } \\\" b\" source_line=3} replicated}").at(0).kind,
            GspmdKind::kReplicated);
  const GspmdSharding last = parse_gspmd(
                                 "{ last_tile_dim_replicate devices=[ 2 , 2 ] <= [ 4 ] "
                                 "metadata={{op_name=\"a\"},{op_type=\"b\"}} shard_like -2 }")
                                 .at(0);
  EXPECT_EQ(last.subgroups, std::vector<GspmdSubgroup>{GspmdSubgroup::kReplicated});
  EXPECT_EQ(last.group, -2);
  EXPECT_TRUE(parse_gspmd("{}").empty());
  EXPECT_EQ(parse_gspmd("{ {manual} , {unknown},{unreduced}}").size(), 3U);
}

TEST(Gspmd, unreduced_tiles_and_values) {
  EXPECT_EQ(in_sdy({"{devices=[2,1,2,2]<=[8] last_tile_dims={unreduced, replicated}}", "{unreduced}"}, 8, 2),
            (std::vector<std::string>{"<[\"_axis_0\"=2, \"_axis_1\"=2, \"_axis_2\"=2]>",
                                      "@m, [{\"_axis_0\"}, {}], unreduced={\"_axis_1\"}",
                                      "@m, [{}, {}], unreduced={\"_axis_0\", \"_axis_1\", \"_axis_2\"}"}));
}

/// What OpSharding::SerializeAsString gave for each text (XLA of jaxlib 0.10.2).
TEST(Gspmd, the_wire_form_says_the_same_as_the_text) {
  using std::string_literals::operator""s;
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {""s, "{replicated}"},
      {":\x03\x12\x01"
       "a"s,
       "{replicated}"},
      {"\x08\x01\x22\x02\xAC\x02"s, "{maximal device=300}"},
      {"\x08\x04"s, "{manual}"},
      {"\x08\x05X\x01`\x02h\x01"s, "{unknown shard_like 2}"},
      {"\x08\x06"s, "{unreduced}"},
      {"\x08\x03\x1A\x02\x02\x04J\x02\x04\x02R\x02\x01\x00"s, "{devices=[2,4]<=[4,2]T(1,0)}"},
      {"\x08\x03\x1A\x02\x02\x02\x22\x04\x03\x01\x02\x00"s, "{devices=[2,2]3,1,2,0}"},
      {"\x08\x03\x1A\x02\x02\x02"
       "0\x01J\x01\x04R\x01\x00"s,
       "{devices=[2,2]<=[4] last_tile_dim_replicate}"},
      {"\x08\x03\x1A\x04\x01\x02\x02\x02"
       "B\x02\x04\x06J\x01\x08R\x01\x00"s,
       "{devices=[1,2,2,2]<=[8] last_tile_dims={manual,unreduced}}"},
      {"\x08\x02*\x00*\x0B\x08\x03\x1A\x01\x02J\x01\x02R\x01\x00"s, "{{replicated}, {devices=[2]<=[2]}}"},
      {"\x08\x03\x1A\x01\x02J\x01\x02R\x01\x00X\x01`\x03"s, "{devices=[2]<=[2] shard_as 3}"},
  };
  for (const auto& [bytes, text] : pairs) {
    const std::vector<GspmdSharding> a = parse_gspmd(bytes);
    const std::vector<GspmdSharding> b = parse_gspmd(text);
    ASSERT_EQ(a.size(), b.size()) << text;
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]) << text;
  }
  for (const std::string& broken :
       {"\x08"s, "\x08\x09"s, "\x1A\x7F\x01"s, "\x08\x02*\x02\x08\x02"s, "\x0B\x0C"s, "\x08\x03\x1A\x02\x02"s,
        "\x01\x01"s, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"s}) {
    EXPECT_THROW(parse_gspmd(broken), core::Error);
  }
}

std::string refused(const std::string& text) {
  try {
    parse_gspmd(text);
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
  return "taken";
}

TEST(Gspmd, wrong_strings_name_the_thing_and_both_numbers) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{devices=[2,3]<=[8]}", "has tiles [2,3] for 6 devices, but <=[8] are 8"},
      {"{devices=[2,3]0,1}", "has tiles [2,3] for 6 devices, but lists 2"},
      {"{devices=[2,2]0,1,1,3}", "lists device 1 more than once"},
      {"{devices=[2]0,7}", "lists device 7 among 2 devices; supported are lists of all devices from 0 to 1"},
      {"{devices=[4]<=[2,2]T(0,0)}", "transposes by T[0,0], which is no permutation of the 2 dimensions <=[2,2]"},
      {"{devices=[2]<=[2] last_tile_dims={manual,replicated}}", "has 2 subgroups, but 1 tile dimensions"},
      {"{devices=[2]<=[2] last_tile_dims={maximal}}",
       "has a subgroup that is maximal, supported are manual, replicated and unreduced"},
      {"{replicated manual}", "is both replicated and manual"},
      {"{replicated devices=[2]<=[2]}", "is replicated and has tiles of devices: one of the two is expected"},
      {"{maximal device=3 device=4}", "is maximal with 2 devices, expected device= once"},
      {"{devices=[2]<=[2] shard_as 1 shard_like 2}", "is in 2 sharding groups, one expected"},
      {"{shard_as 1}", "has neither a kind nor devices=[...]"},
      {"{devices=[99999,99999]<=[9]}", "has tiles [99999,99999], expected sizes from 1 and at most 1048576 devices"},
  };
  for (const auto& [text, said] : cases)
    EXPECT_NE(refused(text).find("sharding \"" + text + "\" " + said), std::string::npos) << refused(text);
  EXPECT_NE(refused("{mesh['a'=2], [{'a'}]}").find("unsupported_attribute"), std::string::npos);
  EXPECT_LT(refused("{devices=[3]" + std::string(100'000, '1') + "}").size(), 400U);
}

TEST(Gspmd, other_kinds_and_groups) {
  EXPECT_EQ(parse_gspmd("{maximal device=3}").at(0).device, 3);
  EXPECT_EQ(parse_gspmd("{unknown shard_as 7}").at(0).group, 7);
  EXPECT_EQ(parse_gspmd("{{replicated}, {manual}}").size(), 2U);
  const GspmdSharding partial = parse_gspmd("{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}").at(0);
  EXPECT_EQ(gspmd_manual_axes(partial, gspmd_meshes({&partial, 1}, 8).at(0)), std::vector<std::string>{"_axis_0"});
  EXPECT_EQ(gspmd_manual_axes(parse_gspmd("{manual}").at(0), gspmd_meshes({&partial, 1}, 8).at(0)).size(), 2U);
}

TEST(Gspmd, wrong_strings_say_where) {
  for (const char* text : {" ", "{", "{devices=[2,2]<=[2]}", "{devices=[2]<=[2]T(1)}", "{devices=[0]<=[0]}",
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

/// A text of 8 elements over two devices with this between the two halves of a manual computation's edges.
std::string between_edges(const std::string& body, const std::string& shard) {
  return R"(func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %s: tensor<f32>) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
    %2 = stablehlo.sine %1 : tensor<4xf32>
    %3 = stablehlo.custom_call @Sharding(%b) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
    %4 = stablehlo.custom_call @SPMDFullToShardShape(%3) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
)" + body +
         "    %x = stablehlo.custom_call @Sharding(" + shard +
         R"() {mhlo.sharding = "{manual}"} : (tensor<4xf32>) -> tensor<4xf32>
    %y = stablehlo.custom_call @SPMDShardToFullShape(%x) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<8xf32>
    return %y : tensor<8xf32>
  })";
}

TEST(GspmdPrograms, a_manual_computation_around_several_ops) {
  const ir::ModuleRef module = parse_stablehlo(between_edges(
      "    %c = stablehlo.constant dense<2.0> : tensor<f32>\n"
      "    %d = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32>\n"
      "    %5 = stablehlo.multiply %2, %d : tensor<4xf32>\n    %6 = stablehlo.add %5, %4 : tensor<4xf32>\n",
      "%6"));
  const auto& ops = module->main().body.ops;
  const auto manual = std::find_if(ops.begin(), ops.end(), [](const ir::Op& op) { return !op.regions.empty(); });
  ASSERT_NE(manual, ops.end());
  EXPECT_EQ(manual->name, "sdy.manual_computation");
  EXPECT_EQ(manual->operands.size(), 2U);
  std::vector<std::string> names;
  for (const ir::Op& op : manual->regions[0].ops) names.push_back(op.name);
  EXPECT_EQ(names, (std::vector<std::string>{"stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.sine",
                                             "stablehlo.multiply", "stablehlo.add", "sdy.return"}));
}

TEST(GspmdPrograms, shards_that_escape_are_refused) {
  EXPECT_EQ(refusal(R"(func.func @main(%a: tensor<8xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  })"),
            "unsupported_attribute: line 4, column 5: this manual computation in the older notation is not supported: "
            "its shards leave through @SPMDShardToFullShape");
}

TEST(GspmdPrograms, a_manual_computation_reads_shards_and_constants_only) {
  EXPECT_EQ(
      refusal(between_edges("    %d = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4xf32>\n"
                            "    %6 = stablehlo.add %2, %d : tensor<4xf32>\n",
                            "%6")),
      "unsupported_attribute: line 7, column 5: this manual computation in the older notation is not supported: a "
      "value that it reads comes in through @SPMDFullToShardShape");
}

}  // namespace
}  // namespace meshd::program
