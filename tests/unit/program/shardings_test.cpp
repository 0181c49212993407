// Shardy's attributes and ops.
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

/// @main with one 8x16 argument that carries this sharding.
std::string with_argument(const std::string& sharding) {
  return in_main("%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding" + sharding + "}", "tensor<8x16xf32>",
                 "    return %a : tensor<8x16xf32>");
}

sharding::TensorSharding argument_sharding(const std::string& text) {
  return *parse_stablehlo(with_argument(text))->main().arguments.at(0).sharding;
}

mesh::Mesh mesh_of(const std::string& text) {
  return *parse_unverified("module { sdy.mesh @m = " + text + " }").meshes.at(0).mesh;
}

TEST(Shardings, print_as_they_were_read) {
  for (const char* text :
       {"@mesh, [{\"x\"}, {\"y\", \"z\"}]", "@mesh, [{}, {?}]", "@mesh, [{\"x\", ?}p1, {\"y\"}p0]",
        "@mesh, [{\"z\":(1)2}, {\"z\":(4)2, ?}]", "@mesh, [{}, {?}], replicated={\"x\", \"z\"}",
        "@mesh, [{\"x\"}, {}], unreduced={\"y\"}", "@mesh, [{}, {}], replicated={\"x\"}, unreduced=max{\"y\"}",
        "@mesh, [{}, {}], unreduced=min{\"y\"}"}) {
    EXPECT_EQ(to_sdy(argument_sharding("<" + std::string(text) + ">")), text);
  }
}

TEST(Shardings, names_become_axis_numbers) {
  const sharding::TensorSharding sharding = argument_sharding("<@mesh, [{\"y\":(2)2, ?}p3, {}]>");
  EXPECT_EQ(sharding.mesh_name, "mesh");
  ASSERT_EQ(sharding.dims[0].axes.size(), 1U);
  EXPECT_EQ(sharding.dims[0].axes[0], (sharding::AxisRef{1, 2, 2}));
  EXPECT_TRUE(sharding.dims[0].open);
  EXPECT_EQ(sharding.dims[0].priority, 3);
}

TEST(Meshes, in_every_grammar) {
  EXPECT_EQ(to_sdy(mesh_of("<[\"x\"=2, \"y\"=4]>")), "<[\"x\"=2, \"y\"=4]>");
  EXPECT_EQ(to_sdy(mesh_of("<\"x\"=2, \"y\"=4>")), "<[\"x\"=2, \"y\"=4]>");
  EXPECT_EQ(
      to_sdy(mesh_of("<[\"x\"=2], device_ids=[1, 0]> {stablehlo.mesh = {axes = [{name = \"x\", size = 2 : i64}]}}")),
      "<[\"x\"=2], device_ids=[1, 0]>");
  EXPECT_TRUE(mesh_of("<[\"x\"=2], device_ids=[0, 1]>").device_ids.empty()) << "iota order is no list";
  EXPECT_TRUE(mesh_of("<[], device_ids=[3]>").is_maximal());
  EXPECT_TRUE(mesh_of("<device_ids=[3]>").is_maximal());
  EXPECT_TRUE(mesh_of("<[]>").is_empty());
}

TEST(Meshes, written_inside_shardings_are_lifted) {
  const ir::ModuleRef module = parse_stablehlo(
      in_main("%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<[\"q\"=2]>, [{\"q\"}]>}, "
              "%b: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<[\"x\"=2, \"y\"=4, \"z\"=8]>, [{\"x\"}]>}, "
              "%c: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<[], device_ids=[5]>, []>}",
              "", "    return"));
  const auto& arguments = module->main().arguments;
  EXPECT_EQ(arguments[0].sharding->mesh_name, "mesh_0");
  EXPECT_EQ(arguments[1].sharding->mesh_name, "mesh") << "the module has the same already";
  EXPECT_EQ(arguments[2].sharding->mesh_name, "maximal_mesh_5");
  EXPECT_EQ(module->meshes.size(), 3U);
}

TEST(Shardings, ops_of_shardy_are_read) {
  const std::string text = in_main("%a: tensor<8x16xf32>", "tensor<8x16xf32>",
                                   R"(    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]> : tensor<8x16xf32>
    %1 = sdy.reshard %0 <@mesh, [{}, {"y"}]> : tensor<8x16xf32>
    sdy.sharding_group %1 group_id=7 : tensor<8x16xf32>
    %2 = sdy.propagation_barrier %1 allowed_direction=BACKWARD : tensor<8x16xf32>
    %3 = sdy.manual_computation(%2) in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{"x", ?}, {}]>] manual_axes={"x"} (%b: tensor<4x16xf32>) {
      sdy.return %b : tensor<4x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %3 : tensor<8x16xf32>)");
  const ir::ModuleRef module = parse_stablehlo(text);
  const auto& ops = module->main().body.ops;
  EXPECT_EQ(ops[0].attributes.at(0).name, "sharding");
  EXPECT_EQ(ir::int_or(ops[2].attributes, "group_id", 0), 7);
  EXPECT_EQ(ir::string_or(ops[3].attributes, "allowed_direction", ""), "BACKWARD");
  EXPECT_EQ(ir::find(ops[4].attributes, "manual_axes")->as<ir::ArrayAttr>()->values.size(), 1U);
  EXPECT_EQ(ops[4].location.line, 8);
  expect_round_trip(text);
}

TEST(Shardings, maximal_and_token_shardings_have_no_dimensions) {
  EXPECT_EQ(refusal(R"(module {
  sdy.mesh @mesh = <["x"=2]>
  sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]>
  func.func @main(%a: !stablehlo.token {sdy.sharding = #sdy.sharding<@mesh, []>}, %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@maximal_mesh_0, []>}) {
    return
  }
})"),
            "none");
}

TEST(Shardings, wrong_ones_are_refused_with_their_place) {
  const auto message = [](const std::string& sharding) { return refusal(with_argument(sharding)); };
  EXPECT_EQ(message("<@mesh, [{\"q\"}, {}]>"),
            "invalid_program: line 3, column 86: unknown axis \"q\", the mesh is Mesh('x': 2, 'y': 4, 'z': 8)");
  EXPECT_EQ(message("<@other, [{}, {}]>"),
            "invalid_program: line 3, column 76: unknown mesh @other: a mesh must be above its use");
  EXPECT_EQ(message("<@mesh, [{}p1, {}]>"),
            "invalid_program: line 3, column 87: a dimension that is empty and closed has no priority");
  EXPECT_EQ(message("<@mesh, [{?, \"x\"}, {}]>"),
            "program_syntax: line 3, column 89: expected '}' behind '?', got '\"x\"'");
  EXPECT_EQ(message("<@mesh, [{\"x\"}]>"),
            "invalid_program: line 3, column 26: argument 0 of @main: sharding has 1 dimensions, but the rank is 2");
  EXPECT_NE(message("<@mesh, [{\"x\"}, {\"x\"}]>").find("at most one positional dimension"), std::string::npos);
}

TEST(FactorRules, several_factors_in_one_dimension) {
  const ir::Module module = parse_unverified(
      "module attributes {r = #sdy.op_sharding_rule<([ij, k])->([i, jk]) {i=2, j=4, k=3} need_replication={k} "
      "permutation={i}>} {}");
  const auto& rule = ir::find(module.attributes, "r")->as<ir::ShardingRuleAttr>()->rule;
  EXPECT_EQ(rule.operands, (std::vector<sharding::TensorFactors>{{{0, 1}, {2}}}));
  EXPECT_EQ(rule.results, (std::vector<sharding::TensorFactors>{{{0}, {1, 2}}}));
  EXPECT_EQ(rule.factors[2].kind, sharding::FactorKind::kNeedReplication);
  EXPECT_FALSE(rule.is_custom);
}

TEST(FactorRules, names_go_on_behind_z) {
  std::string mapping;
  std::string sizes;
  for (int i = 0; i < 20; ++i) {
    const std::string name = i < 18 ? std::string(1, static_cast<char>('i' + i)) : "z_" + std::to_string(i - 17);
    mapping += (i ? ", " : "") + name;
    sizes += (i ? ", " : "") + name + "=2";
  }
  const std::string text = "#sdy.op_sharding_rule<([" + mapping + "])->() {" + sizes + "}>";
  EXPECT_EQ(print(*ir::find(parse_unverified("module attributes {r = " + text + "} {}").attributes, "r")), text);
}

TEST(FactorRules, sizes_are_numbers_of_elements_and_a_tensor_has_each_factor_once) {
  const auto refused = [](const std::string& rule) {
    return refusal("module attributes {r = #sdy.op_sharding_rule<" + rule + ">} { func.func @main() { return } }")
        .substr(0, 15);
  };
  EXPECT_EQ(refused("([i, j])->([j, i]) {i=8, j=1}"), "none");
  EXPECT_EQ(refused("([i])->([i]) {i=0}"), "none");
  EXPECT_EQ(refused("([i])->([i]) {i=-8}"), "invalid_program");
  EXPECT_EQ(refused("([i, i])->([i]) {i=8}"), "invalid_program");
  EXPECT_EQ(refused("([ij])->([jj]) {i=8, j=8}"), "invalid_program");
  EXPECT_EQ(refused("([i, j])->([i, j]) {i=4611686018427387904, j=8}"), "invalid_program");
}

TEST(Shardings, meshes_are_over_one_list_of_devices) {
  const auto refused = [](const std::string& meshes) {
    return refusal("module { " + meshes +
                   " func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> } }");
  };
  EXPECT_EQ(refused(R"(sdy.mesh @a = <["x"=2]> sdy.mesh @b = <["y"=3], device_ids=[4, 2, 3]>)"), "none");
  EXPECT_EQ(
      refused(
          R"(sdy.mesh @a = <["x"=4]> sdy.mesh @b = <["y"=2], device_ids=[3, 1]> sdy.mesh @c = <[], device_ids=[9]>)"),
      "none");
  EXPECT_NE(refused(R"(sdy.mesh @a = <["x"=2], device_ids=[0, 2]>)").find("names device 2"), std::string::npos);
  EXPECT_NE(refused(R"(sdy.mesh @a = <["x"=2], device_ids=[0, 0]>)").find("must be distinct"), std::string::npos);
  EXPECT_NE(refused(R"(sdy.mesh @a = <["x"=2]> sdy.mesh @b = <["y"=2], device_ids=[3, 4]>)").find("which are 0 to 3"),
            std::string::npos);
  EXPECT_EQ(refusal(R"(module attributes {mhlo.num_partitions = 8 : i32} { sdy.mesh @a = <["x"=2], device_ids=[5, 7]>
    func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> } })"),
            "none");
}

}  // namespace
}  // namespace meshd::program
