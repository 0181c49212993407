// Attributes of all kinds: what they are read as, and that they print as what parses again.
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

/// The attribute behind `a = `, read as one of the module's.
ir::Attribute read(const std::string& text) {
  const ir::Module module = parse_unverified("module attributes {a = " + text + "} {}");
  return *ir::find(module.attributes, "a");
}

std::string again(const std::string& text) { return print(read(text)); }

TEST(Attributes, print_as_they_were_read) {
  for (const char* text : {"3 : i64",
                           "-3 : i32",
                           "true",
                           "false",
                           "\"a\\22b\"",
                           "[1 : i64, \"x\", [true]]",
                           "{a = 1 : i64, \"b c\"}",
                           "@main",
                           "@a::@\"b c\"",
                           "array<i64: 1, -2>",
                           "array<i64>",
                           "array<i1: true, false>",
                           "array<i32: 7>",
                           "tensor<2xf32>",
                           "(tensor<f32>) -> tensor<2xf32>",
                           "() -> ()",
                           "(tensor<f32>, !stablehlo.token) -> (tensor<f32>, tensor<f32>)",
                           "#stablehlo<comparison_direction LT>",
                           "#stablehlo<precision DEFAULT>",
                           "#chlo<comparison_type FLOAT>",
                           "#stablehlo.channel_handle<handle = 1, type = 1>",
                           "#stablehlo.gather<offset_dims = [1, 2], index_vector_dim = 2>",
                           "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>",
                           "dense<0> : tensor<4x2xi64>",
                           "dense<[1, 0]> : tensor<2xindex>",
                           "dense<> : tensor<0xindex>",
                           "dense<true> : tensor<3xi1>",
                           "#sdy<propagation_direction FORWARD>",
                           "#foo.bar<1, [2]>",
                           "affine_map<(d0) -> (d0)>",
                           "i32",
                           "f8E4M3FN",
                           "dense<\"0x0000803F00000040\"> : tensor<2xf32>",
                           "18446744073709551615 : ui64",
                           "1.5e+00 : f32",
                           "0x7fc00000 : f32",
                           "#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k} "
                           "blocked_propagation={i}, custom>"}) {
    EXPECT_EQ(again(text), text);
  }
}

TEST(Attributes, numbers_have_default_types) {
  EXPECT_EQ(again("3"), "3 : i64");
  EXPECT_EQ(again("1.0"), "1.0e+00 : f64");
  EXPECT_EQ(again("0x10 : i8"), "16 : i8");
}

TEST(Attributes, numbers_have_the_precision_of_their_type) {
  EXPECT_EQ(read("0.949999988 : f32").as<ir::FloatAttr>()->value, 0.949999988F);
  EXPECT_EQ(again("0.949999988 : f32"), "9.5e-01 : f32");
  EXPECT_EQ(read("0.1 : bf16").as<ir::FloatAttr>()->value, 0.10009765625);
  EXPECT_EQ(again(again("0.1 : f64")), again("0.1 : f64"));
}

TEST(Attributes, lists_in_structs_become_integers) {
  const ir::Attribute attribute = read("#stablehlo.scatter<update_window_dims = [1], index_vector_dim = 1>");
  const auto* scatter = attribute.as<ir::DictAttr>();
  ASSERT_NE(scatter, nullptr);
  EXPECT_EQ(scatter->name, "stablehlo.scatter");
  EXPECT_EQ(ir::ints(scatter->entries, "update_window_dims"), std::vector<int64_t>{1});
  EXPECT_EQ(ir::int_or(scatter->entries, "index_vector_dim", 0), 1);
}

TEST(Attributes, convolution_dimensions_in_both_forms_are_alike) {
  const std::string printed = again("#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>");
  EXPECT_EQ(
      printed,
      "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], "
      "kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], "
      "output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>");
  EXPECT_EQ(again(printed), printed);
}

TEST(Attributes, algorithms_and_aliases_of_outputs) {
  const ir::Attribute algorithm = read("#stablehlo.dot_algorithm<lhs_precision_type = tf32, lhs_component_count = 1>");
  EXPECT_EQ(ir::string_or(algorithm.as<ir::DictAttr>()->entries, "lhs_precision_type", ""), "tf32");
  const ir::Attribute alias =
      read("#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>");
  EXPECT_EQ(ir::int_or(alias.as<ir::DictAttr>()->entries, "operand_index", 0), 1);
}

TEST(Attributes, aliases_stand_for_what_they_were_defined_as) {
  const ir::Module module =
      parse_unverified("#map = [1, 2]\n#deep = {m = #map}\nmodule attributes {a = #deep, b = #map} {}");
  EXPECT_EQ(print(module.attributes), "{a = {m = [1 : i64, 2 : i64]}, b = [1 : i64, 2 : i64]}");
}

TEST(Attributes, aliases_that_multiply_are_stopped) {
  std::string text = "#a0 = [1]\n";
  for (int i = 1; i < 60; ++i) {
    const std::string last = "#a" + std::to_string(i - 1);
    text += "#a" + std::to_string(i) + " = [" + last + ", " + last + "]\n";
  }
  EXPECT_NE(refusal(text + "module attributes {a = #a59} {}").find("program_syntax"), std::string::npos);
  std::string uses;
  for (int i = 0; i < 1000; ++i) uses += "a" + std::to_string(i) + " = #big, ";
  EXPECT_NE(refusal("#big = \"" + std::string(100'000, 'x') + "\"\nmodule attributes {" + uses + "z} {}")
                .find("aliases stand for too much"),
            std::string::npos);
}

TEST(Attributes, wrong_ones_are_refused) {
  const auto message = [](const std::string& text) { return refusal("module attributes {a = " + text + "} {}"); };
  EXPECT_EQ(message("1, a = 2"), "program_syntax: line 1, column 27: attribute 'a' is given twice");
  EXPECT_EQ(message("#x"), "program_syntax: line 1, column 24: alias '#x' is not defined above its use");
  EXPECT_EQ(message("1.5 : i32"), "program_syntax: line 1, column 24: a number with a point cannot have type i32");
  EXPECT_EQ(message("[1"), "program_syntax: line 1, column 26: expected ']' around a list of attributes, got '}'");
  EXPECT_EQ(message("99999999999999999999"),
            "program_syntax: line 1, column 24: the number '99999999999999999999' does not fit in 64 bits");
  EXPECT_EQ(message("array<i1: 1, 16>"), "program_syntax: line 1, column 37: the number '16' does not fit in i1");
  EXPECT_EQ(message("300 : i8"), "program_syntax: line 1, column 24: the number '300' does not fit in i8");
  EXPECT_EQ(message("255 : i8"), "invalid_program: the module has no function @main");
  std::string deep(100, '[');
  EXPECT_EQ(message(deep), "program_syntax: line 1, column 88: attributes nest too deeply");
}

}  // namespace
}  // namespace meshd::program
