// What the parser and the verifier refuse, with the words that a client reads.
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

std::string body(const std::string& text) {
  return refusal("func.func @main(%a: tensor<2xf32>, %i: tensor<2xi32>) -> tensor<2xf32> {\n" + text + "\n}");
}

TEST(Refused, unknown_ops_are_named_with_their_place) {
  EXPECT_EQ(body("  %0 = stablehlo.frobnicate %a : tensor<2xf32>"),
            "unsupported_op: line 2, column 8: op 'stablehlo.frobnicate' is not supported");
  EXPECT_EQ(body("  %0 = \"tf.Add\"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"),
            "unsupported_op: line 2, column 8: op 'tf.Add' is not supported");
  EXPECT_EQ(refusal("module {\n  ml_program.global @x\n}"),
            "unsupported_op: line 2, column 3: op 'ml_program.global' is not supported in a module");
}

TEST(Refused, values_must_be_defined_once_and_above) {
  EXPECT_EQ(body("  %0 = stablehlo.add %a, %b : tensor<2xf32>"),
            "invalid_program: line 2, column 26: value '%b' is not defined above its use");
  EXPECT_EQ(body("  %a = stablehlo.add %a, %a : tensor<2xf32>"),
            "invalid_program: line 2, column 3: value '%a' is defined twice");
  EXPECT_EQ(body("  %0 = stablehlo.add %a, %a#1 : tensor<2xf32>"),
            "invalid_program: line 2, column 28: value '%a' has 1 results, there is no '#1'");
  EXPECT_EQ(body("  %0:2 = stablehlo.add %a, %a : tensor<2xf32>"),
            "invalid_program: line 2, column 10: 'stablehlo.add' has 1 results, but 2 are named");
}

TEST(Refused, the_body_of_a_scatter_is_of_scalars) {
  const auto of = [](const std::string& type) {
    return body(
        "  %0 = \"stablehlo.scatter\"(%a, %i, %a) <{scatter_dimension_numbers = "
        "#stablehlo.scatter<inserted_window_dims = "
        "[0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n  ^bb0(%x: " +
        type + ", %y: " + type + "):\n    stablehlo.return %y : " + type +
        "\n  }) : (tensor<2xf32>, tensor<2xi32>, tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>");
  };
  EXPECT_EQ(of("tensor<f32>"), "none");
  EXPECT_NE(of("tensor<5xf32>").find("scatter C23"), std::string::npos);
  EXPECT_NE(of("!stablehlo.token").find("scatter C23"), std::string::npos);
}

TEST(Refused, a_region_does_not_leak_its_values) {
  EXPECT_EQ(body(R"(  %p = stablehlo.constant dense<true> : tensor<i1>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %a : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }, {
    stablehlo.return %1 : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>)"),
            "invalid_program: line 7, column 22: value '%1' is not defined above its use");
}

TEST(Refused, types_must_agree_with_definitions) {
  EXPECT_EQ(body("  %0 = stablehlo.add %a, %i : tensor<2xf32>"),
            "invalid_program: line 2, column 3: operand %i of 'stablehlo.add' is used as tensor<2xf32>, but its type "
            "is tensor<2xi32>");
  EXPECT_EQ(body("  return %i : tensor<2xi32>"),
            "invalid_program: line 2, column 3: value 0 that @main returns is tensor<2xi32>, but its type says "
            "tensor<2xf32>");
  EXPECT_EQ(body("  return"), "invalid_program: line 2, column 3: @main returns 0 values, but its type has 1");
}

TEST(Refused, declared_results_must_be_the_inferred_ones) {
  const std::string message = body(
      "  %0 = \"stablehlo.add\"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xf32>\n  return %a : "
      "tensor<2xf32>");
  EXPECT_EQ(message.substr(0, 38), "invalid_program: line 2, column 3: add") << message;
}

TEST(Refused, operands_regions_and_attributes_are_counted) {
  EXPECT_EQ(body("  %0 = \"stablehlo.add\"(%a) : (tensor<2xf32>) -> tensor<2xf32>\n  return %a : tensor<2xf32>"),
            "invalid_program: line 2, column 3: 'stablehlo.add' takes 2 operands, got 1");
  EXPECT_EQ(
      body("  %0 = \"stablehlo.add\"(%a, %a) <{colour = 1 : i64}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"),
      "unsupported_attribute: line 2, column 33: op 'stablehlo.add' has no attribute 'colour'");
  EXPECT_EQ(body("  %0 = stablehlo.add %a, %a {mhlo.colour = 1 : i64} : tensor<2xf32>\n  return %0 : tensor<2xf32>"),
            "none")
      << "attributes of others are kept and ignored";
}

TEST(Refused, a_field_and_its_attribute_together) {
  EXPECT_EQ(body("  %0 = stablehlo.concatenate %a, %a, dim = 0 {dimension = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) "
                 "-> tensor<4xf32>"),
            "program_syntax: line 2, column 3: attribute 'dimension' of 'stablehlo.concatenate' is given twice");
}

TEST(Refused, accuracies_beyond_ours) {
  const auto with = [](const std::string& accuracy) {
    return body("  %0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<" + accuracy +
                ">} : tensor<2xf32>\n  return %0 : tensor<2xf32>");
  };
  EXPECT_EQ(with("mode = #stablehlo.result_accuracy_mode<DEFAULT>"), "none");
  EXPECT_EQ(with("ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>"), "none");
  EXPECT_EQ(with("ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>"),
            "unsupported_attribute: line 2, column 3: 'result_accuracy' of 'stablehlo.exponential': results are within "
            "4 units in the last place");
}

TEST(Refused, functions_end_in_a_return) {
  EXPECT_EQ(
      body("  %0 = stablehlo.negate %a : tensor<2xf32>"),
      "invalid_program: line 2, column 3: a region of function @main must end in a return, got 'stablehlo.negate'");
  EXPECT_EQ(body("  return %a : tensor<2xf32>\n  return %a : tensor<2xf32>"),
            "invalid_program: line 2, column 3: 'func.return' must be the last op of its region");
  EXPECT_EQ(body(""),
            "invalid_program: line 1, column 1: a region of function @main is empty: it must end in a return");
  EXPECT_EQ(refusal("module {}"), "invalid_program: the module has no function @main");
}

TEST(Refused, calls) {
  const auto call = [](const std::string& text, const std::string& functions) {
    return refusal("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n" + text +
                   "\n  return %a : tensor<2xf32>\n}\n" + functions);
  };
  EXPECT_EQ(call("  %0 = call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>", ""),
            "invalid_program: line 2, column 3: function @f is not defined");
  EXPECT_EQ(call("  %0 = call @main(%a) : (tensor<2xf32>) -> tensor<2xf32>", ""),
            "invalid_program: line 2, column 3: function @main calls itself");
  EXPECT_EQ(call("  %0 = call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>",
                 "func.func @f(%x: tensor<3xf32>) -> tensor<2xf32> {\n  call @g() : () -> ()\n  return %x : "
                 "tensor<3xf32>\n}\nfunc.func @g() {\n  call @f() : () -> ()\n  return\n}"),
            "invalid_program: line 10, column 3: function @f calls itself");
  EXPECT_EQ(call("  call @f(%a) : (tensor<2xf32>) -> ()", "func.func @f(%x: tensor<3xf32>) {\n  return\n}"),
            "invalid_program: line 2, column 3: argument 0 of @f is tensor<3xf32>, got tensor<2xf32>");
  EXPECT_EQ(call("  call @f(%a) : (tensor<2xf32>) -> ()", "func.func @f() {\n  return\n}"),
            "invalid_program: line 2, column 3: @f has 0 arguments, got 1");
}

TEST(Refused, deep_nesting_ends_in_a_message) {
  std::string deep = "func.func @main(%p: tensor<i1>) {\n";
  for (int i = 0; i < 100'000; ++i) deep += "\"stablehlo.if\"(%p) ({\n";
  EXPECT_NE(refusal(deep).find("regions nest more than 256 deep"), std::string::npos);
  EXPECT_NE(refusal("module attributes {a = " + std::string(100'000, '{')).find("program_syntax"), std::string::npos);
  std::string tuples = "func.func @main(%a: ";
  for (int i = 0; i < 100'000; ++i) tuples += "tuple<";
  EXPECT_NE(refusal(tuples).find("types nest too deeply"), std::string::npos);
}

TEST(Refused, several_blocks_and_successors) {
  EXPECT_EQ(body("  return %a : tensor<2xf32>\n^bb1:\n  return %a : tensor<2xf32>"),
            "unsupported_op: line 3, column 1: regions of more than one block are not supported");
}

TEST(Refused, other_languages_are_known_by_their_beginnings) {
  const auto begins = [](const std::string& text, const std::string& with) {
    const std::string found = refusal(text);
    EXPECT_TRUE(found.starts_with("program_syntax: " + with)) << found;
  };
  begins("def f(x):\n  return x",
         "line 1, column 1: this is Python, not StableHLO: send it with \"format\": \"numpy\"");
  begins("\n# a comment\n  import jax", "line 3, column 3: this is Python");
  begins("HloModule jit_f, entry_computation_layout={...}", "line 1, column 1: this is HLO text");
  begins("{ lambda ; a:f32[3]. let in () }", "line 1, column 1: this is a jaxpr");
  begins("{\"text\": \"module {}\"}", "line 1, column 1: this is JSON");
  begins(
      "func.func @main() -> tensor<4xf32> {\n  %0 = stablehlo.constant dense_resource<__elided__> : tensor<4xf32>\n}",
      "line 2, column 42: the values of this constant were left out");
  // Comments and aliases of MLIR are none of Python's.
  EXPECT_EQ(refusal("// def f(x):\n#loc = loc(unknown)\nfunc.func @main() { return }"), "none");
}

}  // namespace
}  // namespace meshd::program
