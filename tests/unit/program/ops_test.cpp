// Ops: pretty forms become what the generic form says.
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

/// Both bodies in one module give the same generic text.
void expect_same(const std::string& arguments, const std::string& results, const std::string& pretty,
                 const std::string& generic) {
  const std::string a = print_generic(parse_unverified(in_main(arguments, results, pretty)));
  const std::string b = print_generic(parse_unverified(in_main(arguments, results, generic)));
  EXPECT_EQ(a, b);
  EXPECT_EQ(print_generic(parse_unverified(a)), a);
}

TEST(PrettyForms, fields_become_attributes) {
  expect_same("%a: tensor<2x3xf32>, %b: tensor<f32>", "", R"(
    %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.pad %a, %b, low = [1, 0], high = [0, -1], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x2xf32>
    %2 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %3 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %4 = stablehlo.slice %a [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>
    %5 = stablehlo.compare LT, %a, %a, TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %6 = stablehlo.compare EQ, %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    return)",
              R"(
    %0 = "stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = "stablehlo.pad"(%a, %b) <{edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, -1>, interior_padding = array<i64: 0, 0>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x2xf32>
    %2 = "stablehlo.concatenate"(%a, %a) <{dimension = 0 : i64}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %3 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>
    %4 = "stablehlo.slice"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 3>, strides = array<i64: 1, 2>}> : (tensor<2x3xf32>) -> tensor<2x1xf32>
    %5 = "stablehlo.compare"(%a, %a) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %6 = "stablehlo.compare"(%a, %a) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    "func.return"() : () -> ())");
}

TEST(PrettyForms, one_type_stands_for_all) {
  expect_same("%a: tensor<2xf32>, %p: tensor<i1>", "", R"(
    %0 = stablehlo.add %a, %a : tensor<2xf32>
    %1 = stablehlo.select %p, %a, %a : tensor<i1>, tensor<2xf32>
    %2 = stablehlo.complex %a, %a : tensor<2xcomplex<f32>>
    %3:2 = stablehlo.optimization_barrier %a, %p : tensor<2xf32>, tensor<i1>
    %4 = stablehlo.reduce_precision %a, format = e5m10 : tensor<2xf32>
    return)",
              R"(
    %0 = "stablehlo.add"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %1 = "stablehlo.select"(%p, %a, %a) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = "stablehlo.complex"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f32>>
    %3:2 = "stablehlo.optimization_barrier"(%a, %p) : (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, tensor<i1>)
    %4 = "stablehlo.reduce_precision"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<2xf32>) -> tensor<2xf32>
    "func.return"() : () -> ())");
}

TEST(PrettyForms, loops) {
  expect_same("%a: tensor<i32>, %p: tensor<i1>", "", R"(
    %0:2 = stablehlo.while(%i = %a, %j = %p) : tensor<i32>, tensor<i1> attributes {mhlo.x = 1 : i64}
    cond {
      stablehlo.return %j : tensor<i1>
    } do {
      stablehlo.return %i, %j : tensor<i32>, tensor<i1>
    }
    return)",
              R"(
    %0:2 = "stablehlo.while"(%a, %p) ({
    ^bb0(%i: tensor<i32>, %j: tensor<i1>):
      "stablehlo.return"(%j) : (tensor<i1>) -> ()
    }, {
    ^bb0(%i: tensor<i32>, %j: tensor<i1>):
      "stablehlo.return"(%i, %j) : (tensor<i32>, tensor<i1>) -> ()
    }) {mhlo.x = 1 : i64} : (tensor<i32>, tensor<i1>) -> (tensor<i32>, tensor<i1>)
    "func.return"() : () -> ())");
}

TEST(PrettyForms, locations_and_names) {
  const ir::Module module = parse_unverified(R"(#loc1 = loc("early"(#loc2))
module {
  func.func @main(%a: tensor<f32> loc("x")) -> tensor<f32> {
    %x:2 = stablehlo.optimization_barrier %a, %a : tensor<f32>, tensor<f32> loc(#loc1)
    %y = stablehlo.add %x#0, %x#1 : tensor<f32> loc("file.py":3:7 to :9)
    %z = stablehlo.add %y, %x : tensor<f32> loc(callsite(#loc3 at #loc1))
    return %z : tensor<f32> loc(unknown)
  } loc(#loc2)
} loc(#loc2)
#loc2 = loc(unknown)
#loc3 = loc("late")
)");
  const auto& main = module.main();
  EXPECT_EQ(main.body.ops[0].location.name, "early");
  EXPECT_EQ(main.body.ops[1].location.name, "file.py:3");
  EXPECT_EQ(main.body.ops[2].location.name, "late");
  EXPECT_EQ(main.body.ops[3].location.name, "");
  EXPECT_EQ(main.body.ops[1].location.line, 5);
  EXPECT_EQ(main.body.ops[1].location.column, 5);
  EXPECT_EQ(main.arguments[0].location.name, "x");
  EXPECT_EQ(main.values[1].name, "%x#0");
  EXPECT_EQ(main.values[2].name, "%x#1");
  EXPECT_EQ(main.body.ops[2].operands[1], main.body.ops[0].results[0]) << "%x is %x#0";
}

TEST(PrettyForms, a_barrier_around_nothing_and_a_trace) {
  const ir::ModuleRef module = parse_stablehlo(R"(func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    stablehlo.optimization_barrier()
    %0:2 = stablehlo.optimization_barrier %a, %a : tensor<2xf32>, tensor<2xf32>
    stablehlo.trace %a, "here" : tensor<2xf32>
    return %0#0 : tensor<2xf32>
  })");
  EXPECT_TRUE(module->main().body.ops[0].results.empty());
  EXPECT_EQ(ir::string_or(module->main().body.ops[2].attributes, "tag", ""), "here");
  expect_round_trip(print_generic(*module));
}

/// Before 2023 the same ops were those of the dialect mhlo.
TEST(PrettyForms, names_of_the_older_dialect) {
  const ir::ModuleRef module = parse_stablehlo(R"(module @jit_f {
    func.func public @main(%a: tensor<4xf32>, %t: !mhlo.token) -> tensor<f32> {
      %0 = mhlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = mhlo.reduce(%a init: %0) applies mhlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %2 = "mhlo.compare"(%1, %1) {comparison_direction = #mhlo<comparison_direction LT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = "mhlo.dot_general"(%a, %a) {dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#mhlo<precision DEFAULT>, #mhlo<precision DEFAULT>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
      %4 = "mhlo.select"(%2, %1, %3) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      return %4 : tensor<f32>
    }
  })");
  EXPECT_EQ(module->main().body.ops[1].name, "stablehlo.reduce");
  EXPECT_EQ(module->main().body.ops[1].regions[0].ops[0].name, "stablehlo.add");
  expect_round_trip(print_generic(*module));
  EXPECT_NE(refusal("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = mhlo.unheard %a : tensor<4xf32> return "
                    "%0 : tensor<4xf32> }")
                .find("'mhlo.unheard' is not supported"),
            std::string::npos);
}

TEST(PrettyForms, custom_calls) {
  const ir::Op op = first_op("%a: tensor<2xf32>", "", R"(
    stablehlo.custom_call @"some\22body"(%a) {api_version = 4 : i32, has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (tensor<2xf32>) -> ()
    return)");
  EXPECT_EQ(ir::string_or(op.attributes, "call_target_name", ""), "some\"body");
  EXPECT_TRUE(ir::bool_or(op.attributes, "has_side_effect", false));
  EXPECT_EQ(ir::int_or(ir::dict(op.attributes, "mhlo.backend_config").entries, "index", 9), 0);
  EXPECT_TRUE(op.results.empty());
}

}  // namespace
}  // namespace meshd::program
