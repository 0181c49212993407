// Regions of scalar ops that read values from around them.
#include "service/program/transform/captured_values.h"

#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

/// What specialise makes of a @main with this body.
std::string specialised(const std::string& body) {
  const ir::Module flat = inline_calls(
      *parse_stablehlo("func.func @main(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<f32> {\n" + body + "\n}\n"));
  EXPECT_TRUE(has_more_than_plain_ops(flat));
  return print_generic(specialise(flat));
}

/// The ops of @main, by name.
std::vector<std::string> names(const std::string& text) {
  const ir::ModuleRef module = parse_stablehlo(text);
  std::vector<std::string> out;
  for (const ir::Op& op : module->main().body.ops) out.push_back(op.name);
  return out;
}

TEST(CapturedValues, a_scalar_becomes_an_operand_of_a_reduction) {
  const std::string text = specialised(R"(  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce"(%x, %c) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.maximum %r, %s : tensor<f32>
    %2 = stablehlo.add %l, %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>)");
  EXPECT_EQ(names(text), (std::vector<std::string>{"stablehlo.constant", "stablehlo.broadcast_in_dim",
                                                   "stablehlo.reduce", "func.return"}));
  const ir::ModuleRef module = parse_stablehlo(text);
  const ir::Op& reduce = module->main().body.ops[2];
  EXPECT_EQ(reduce.operands.size(), 4U);
  EXPECT_EQ(reduce.results.size(), 2U);
  EXPECT_EQ(reduce.regions[0].arguments.size(), 4U);
  EXPECT_FALSE(captures_values(reduce));
}

TEST(CapturedValues, constants_are_copied_into_each_region) {
  const std::string text = specialised(R"(  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %u = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = "stablehlo.select_and_scatter"(%x, %u, %c) ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.maximum %l, %c : tensor<f32>
    %2 = stablehlo.compare GE, %1, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %3 = stablehlo.maximum %r, %c : tensor<f32>
    %4 = stablehlo.add %l, %3 : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return %c : tensor<f32>)");
  const ir::ModuleRef module = parse_stablehlo(text);
  const ir::Op& op = module->main().body.ops[2];
  ASSERT_EQ(op.regions.size(), 2U);
  EXPECT_EQ(op.regions[0].ops[0].name, "stablehlo.constant");
  EXPECT_EQ(op.regions[1].ops[0].name, "stablehlo.constant");
  EXPECT_EQ(op.operands.size(), 3U);
  EXPECT_FALSE(captures_values(op));
}

TEST(CapturedValues, results_keep_their_shardings) {
  const ir::Module flat = inline_calls(*parse_stablehlo(R"(module {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
    %0 = "stablehlo.sort"(%x) ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %1 = stablehlo.add %l, %s : tensor<f32>
      %2 = stablehlo.compare LT, %1, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }) {dimension = 0 : i64, sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})"));
  const std::string text = print_generic(specialise(flat));
  EXPECT_NE(text.find(R"(#sdy.sharding_per_value<[<@m, [{"x"}]>, <@m, [{?}]>]>)"), std::string::npos) << text;
}

TEST(CapturedValues, control_flow_keeps_what_it_reads) {
  const ir::Module flat =
      inline_calls(*parse_stablehlo(R"(func.func @main(%p: tensor<i1>, %s: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.if"(%p) ({
      %1 = stablehlo.sine %s : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }, {
      stablehlo.return %s : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %0 : tensor<f32>
  })"));
  EXPECT_FALSE(has_more_than_plain_ops(flat));
}

}  // namespace
}  // namespace meshd::program
