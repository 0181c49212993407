// Tuples at the edges of a program: arguments and results of @main, and what custom calls of older texts give.
#include "service/program/transform/unpack_tuples.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

std::vector<std::string> types(const std::vector<ir::Parameter>& parameters) {
  std::vector<std::string> out;
  for (const ir::Parameter& parameter : parameters) out.push_back(to_string(parameter.type));
  return out;
}

TEST(Tuples, main_takes_and_gives_the_leaves) {
  const ir::ModuleRef module = parse_stablehlo(R"(
func.func @main(%a: tuple<tensor<2xf32>, tuple<tensor<3xi32>, !stablehlo.token>, tuple<>>, %b: tensor<2xf32> {tf.aliasing_output = 1 : i32})
    -> (tuple<tensor<3xi32>, tuple<tensor<2xf32>>> {jax.result_info = "r"}, tensor<2xf32>) {
  %0 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<2xf32>, tuple<tensor<3xi32>, !stablehlo.token>, tuple<>>) -> tensor<2xf32>
  %1 = stablehlo.get_tuple_element %a[1] : (tuple<tensor<2xf32>, tuple<tensor<3xi32>, !stablehlo.token>, tuple<>>) -> tuple<tensor<3xi32>, !stablehlo.token>
  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<3xi32>, !stablehlo.token>) -> tensor<3xi32>
  %3 = stablehlo.tuple %0 : tuple<tensor<2xf32>>
  %4 = stablehlo.tuple %2, %3 : tuple<tensor<3xi32>, tuple<tensor<2xf32>>>
  return %4, %b : tuple<tensor<3xi32>, tuple<tensor<2xf32>>>, tensor<2xf32>
})");
  const ir::Function& main = module->main();
  EXPECT_EQ(types(main.arguments),
            (std::vector<std::string>{"tensor<2xf32>", "tensor<3xi32>", "!stablehlo.token", "tensor<2xf32>"}));
  EXPECT_TRUE(main.arguments[2].is_token);
  EXPECT_EQ(types(main.results), (std::vector<std::string>{"tensor<3xi32>", "tensor<2xf32>", "tensor<2xf32>"}));
  EXPECT_EQ(main.results[1].result_info, "r[1][0]");
  EXPECT_EQ(main.arguments[3].aliases_output, 2);
  expect_round_trip(print_generic(*module));
}

TEST(Tuples, shardings_go_to_the_leaves) {
  const ir::ModuleRef module = parse_stablehlo(R"(
func.func @main(%a: tuple<tensor<8xf32>, tensor<f32>> {mhlo.sharding = "{{devices=[4]0,1,3,2}, {replicated}}"}) -> tensor<8xf32> {
  %0 = stablehlo.get_tuple_element %a[0] : (tuple<tensor<8xf32>, tensor<f32>>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
})");
  EXPECT_EQ(to_sdy(*module->main().arguments[0].sharding), "@mesh, [{\"_axis_0\"}]");
  EXPECT_EQ(to_sdy(*module->main().arguments[1].sharding), "@mesh, []");
}

TEST(Tuples, a_custom_call_that_gives_a_tuple_gives_its_leaves) {
  const ir::ModuleRef module = parse_stablehlo(R"(
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @foo(%a) : (tensor<2xf32>) -> tuple<tensor<2xf32>, tensor<i32>>
  %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<2xf32>, tensor<i32>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
})");
  EXPECT_EQ(module->main().body.ops[0].results.size(), 2U);
  EXPECT_EQ(module->main().body.ops[1].name, "stablehlo.tuple");
}

TEST(Tuples, wrong_ones_are_named) {
  const auto with = [](const std::string& attributes, const std::string& other = "") {
    return refusal("func.func @main(%a: tuple<tensor<i32>, tensor<i32>> {" + attributes + "}" + other +
                   ") -> tuple<tensor<i32>, tensor<i32>> { return %a : tuple<tensor<i32>, tensor<i32>> }");
  };
  EXPECT_EQ(with("mhlo.sharding = \"{{replicated}, {replicated}, {replicated}}\""),
            "invalid_program: line 1, column 17: 'mhlo.sharding' has 3 shardings for a tuple of 2 values");
  EXPECT_EQ(with("tf.aliasing_output = 0 : i32").substr(0, 21), "unsupported_attribute");
  EXPECT_EQ(with("", ", %b: tensor<i32> {tf.aliasing_output = 0 : i32}").substr(0, 21), "unsupported_attribute");
  // A body that gives something else is the verifier's to refuse.
  EXPECT_EQ(refusal("func.func @main(%a: tuple<tensor<i32>>) -> tensor<i32> { return %a : tuple<tensor<i32>> }")
                .substr(0, 15),
            "invalid_program");
}

}  // namespace
}  // namespace meshd::program
