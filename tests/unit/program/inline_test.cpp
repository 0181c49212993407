// Calls flattened into @main.
#include "service/program/transform/inline_calls.h"
#include "service/program/verify/verify.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

constexpr const char* kTwoCalls = R"(module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @outer(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = call @inner(%0) : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @outer(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @inner(%a) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.negate %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @inner(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) {
    %0 = stablehlo.tanh %a : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
})";

TEST(InlineCalls, bodies_stand_in_place_of_calls) {
  const ir::Module flat = inline_calls(*parse_stablehlo(kTwoCalls));
  ASSERT_EQ(flat.functions.size(), 1U);
  const auto& ops = flat.main().body.ops;
  ASSERT_EQ(ops.size(), 4U);
  EXPECT_EQ(ops[0].name, "stablehlo.tanh");
  EXPECT_EQ(ops[0].location.calls, (std::vector<int32_t>{4, 9}));
  EXPECT_EQ(ops[0].location.line, 14);
  EXPECT_EQ(ops[1].name, "stablehlo.negate");
  EXPECT_EQ(ops[1].location.calls, std::vector<int32_t>{4});
  EXPECT_EQ(ops[2].name, "stablehlo.tanh");
  EXPECT_EQ(ops[2].location.calls, std::vector<int32_t>{5});
  EXPECT_TRUE(ops[3].location.calls.empty());
  EXPECT_EQ(ops[1].operands[0], ops[0].results[0]);
  EXPECT_EQ(ops[3].operands[0], ops[2].results[0]);
  verify(flat);
}

TEST(InlineCalls, calls_are_remembered_with_their_shardings) {
  const ir::Module flat = inline_calls(*parse_stablehlo(kTwoCalls));
  const auto& calls = flat.inlined_calls;
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].callee, "outer");
  EXPECT_EQ(calls[1].callee, "inner");
  EXPECT_EQ(calls[1].parent, 0);
  EXPECT_EQ(calls[2].parent, -1);
  EXPECT_EQ(to_sdy(*calls[0].result_shardings.at(0)), "@mesh, [{\"x\"}]") << "the call's own";
  EXPECT_EQ(to_sdy(*calls[1].result_shardings.at(0)), "@mesh, [{?}]") << "the callee's";
  EXPECT_EQ(to_sdy(*calls[1].argument_shardings.at(0)), "@mesh, [{\"y\"}]");
  const auto& ops = flat.main().body.ops;
  EXPECT_EQ(ops[0].location.frame, 1);
  EXPECT_EQ(ops[2].location.frame, 2);
  EXPECT_EQ(ops[3].location.frame, -1);
  EXPECT_EQ(calls[0].arguments.at(0), flat.main().body.arguments.at(0));
  EXPECT_EQ(calls[0].results.at(0), ops[1].results[0]);
  EXPECT_EQ(calls[2].arguments.at(0), ops[1].results[0]);
}

TEST(InlineCalls, a_function_that_gives_back_its_argument_adds_nothing) {
  const ir::Module flat = inline_calls(*parse_stablehlo(R"(module {
  func.func @main(%a: tensor<f32>) -> tensor<f32> {
    %0 = call @same(%a) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @same(%a: tensor<f32>) -> tensor<f32> {
    return %a : tensor<f32>
  }
})"));
  ASSERT_EQ(flat.main().body.ops.size(), 1U);
  EXPECT_EQ(flat.main().body.ops[0].operands[0], flat.main().body.arguments[0]);
}

TEST(InlineCalls, calls_in_regions_get_fresh_values) {
  const ir::Module flat = inline_calls(*parse_stablehlo(R"(module {
  func.func @main(%i: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.while(%x = %i) : tensor<i32>
    cond {
      %1 = func.call @below(%x) : (tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = func.call @next(%x) : (tensor<i32>) -> tensor<i32>
      %2 = func.call @next(%1) : (tensor<i32>) -> tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }
    return %0 : tensor<i32>
  }
  func.func private @below(%a: tensor<i32>) -> tensor<i1> {
    %c = stablehlo.constant dense<10> : tensor<i32>
    %0 = stablehlo.compare LT, %a, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func private @next(%a: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %a, %c : tensor<i32>
    return %0 : tensor<i32>
  }
})"));
  verify(flat);
  expect_round_trip(print_generic(flat));
  EXPECT_EQ(flat.main().body.ops[0].regions[1].ops.size(), 5U);
}

TEST(InlineCalls, a_text_that_doubles_itself_is_refused) {
  std::string text = "module {\n  func.func @main() {\n    call @f0() : () -> ()\n    return\n  }\n";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "    call @f" + std::to_string(i + 1) + "() : () -> ()\n";
    text += "  func.func private @f" + std::to_string(i) + "() {\n" + next + next + "    return\n  }\n";
  }
  text += "  func.func private @f60() {\n    return\n  }\n}\n";
  const ir::ModuleRef module = parse_stablehlo(text);
  EXPECT_THROW(inline_calls(*module), core::Error);
}

TEST(InlineCalls, composites_are_calls_too) {
  const ir::Module flat = inline_calls(*parse_stablehlo(R"(module {
  func.func @main(%a: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.composite "my.tanh" %a {decomposition = @impl, version = 1 : i32} : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @impl(%a: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.tanh %a : tensor<f32>
    return %0 : tensor<f32>
  }
})"));
  EXPECT_EQ(flat.main().body.ops[0].name, "stablehlo.tanh");
}

}  // namespace
}  // namespace meshd::program
