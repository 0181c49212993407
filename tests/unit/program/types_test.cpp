// Types of values, in all element types.
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

std::string type_of_argument(const std::string& type) {
  const ir::Module module = parse_unverified("func.func @main(%a: " + type + ") { return }");
  return print(module.main().arguments.at(0).type);
}

TEST(Types, every_element_type_is_read_and_printed) {
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    const std::string type = "tensor<2x3x" + std::string(row.stablehlo) + ">";
    EXPECT_EQ(type_of_argument(type), type);
    const std::string scalar = "tensor<" + std::string(row.stablehlo) + ">";
    EXPECT_EQ(type_of_argument(scalar), scalar);
  }
}

TEST(Types, sizes_of_zero_and_dynamic_ones) {
  EXPECT_EQ(type_of_argument("tensor<0x0xf32>"), "tensor<0x0xf32>");
  EXPECT_EQ(type_of_argument("tensor<0x3xi8>"), "tensor<0x3xi8>");
  EXPECT_EQ(type_of_argument("tensor<?x4xf32>"), "tensor<?x4xf32>");
  EXPECT_EQ(type_of_argument("tensor<9223372036854775807xi1>"), "tensor<9223372036854775807xi1>");
}

TEST(Types, tokens_and_tuples) {
  EXPECT_EQ(type_of_argument("!stablehlo.token"), "!stablehlo.token");
  EXPECT_EQ(type_of_argument("tuple<tensor<2xf32>, tuple<>>"), "tuple<tensor<2xf32>, tuple<>>");
}

TEST(Types, other_spellings_of_integers) {
  EXPECT_EQ(type_of_argument("tensor<2xsi32>"), "tensor<2xi32>");
  EXPECT_EQ(type_of_argument("tensor<si8>"), "tensor<i8>");
  EXPECT_EQ(type_of_argument("tensor<4xindex>"), "tensor<4xi64>");
  EXPECT_EQ(type_of_argument("tensor< 4 x ? x i32 >"), "tensor<4x?xi32>") << "as people write it";
}

TEST(Types, others_are_refused_by_name) {
  const auto message = [](const std::string& type) { return refusal("func.func @main(%a: " + type + ") { return }"); };
  EXPECT_EQ(message("tensor<2xf128>"), "unsupported_dtype: line 1, column 30: element type 'f128' is not supported");
  EXPECT_EQ(message("tensor<2x!quant.calibrated<f32<0.0:1.0>>>"),
            "unsupported_dtype: line 1, column 30: element type '!quant.calibrated' is not supported");
  EXPECT_EQ(message("tensor<complex<i8>>"),
            "unsupported_dtype: line 1, column 36: complex numbers have parts of f32 or f64, got 'i8'");
  EXPECT_EQ(message("tensor<*xf32>"), "unsupported_type: line 1, column 27: tensors without a rank are not supported");
  EXPECT_EQ(refusal("#CSR = #sparse_tensor.encoding<{map = (d0) -> (d0 : compressed)}>\n"
                    "func.func @main(%a: tensor<4xf32, #CSR>) { return }"),
            "unsupported_type: line 2, column 35: a sparse tensor (#sparse_tensor.encoding) is not supported: send it "
            "dense");
  EXPECT_EQ(message("tensor<2xf32, #a.b>"),
            "unsupported_type: line 1, column 35: a tensor type with the encoding '#a.b' is not supported");
  EXPECT_EQ(message("!t"), "program_syntax: line 1, column 21: alias '!t' is not defined above its use");
  EXPECT_EQ(message("memref<2xf32>"),
            "unsupported_type: line 1, column 21: a value must be a tensor, a token or a tuple, got 'memref'");
  EXPECT_EQ(message("!mhlo.async"), "unsupported_type: line 1, column 21: type '!mhlo.async' is not supported");
  EXPECT_EQ(message("tensor<99999999999999999999xf32>"),
            "program_syntax: line 1, column 27: a dimension does not fit in 63 bits");
  EXPECT_EQ(message("tensor<2x>"), "program_syntax: line 1, column 30: expected an element type, got '>'");
  EXPECT_EQ(message("f"), "program_syntax: line 1, column 21: expected a type, such as tensor<2x3xf32>, got 'f'");
}

TEST(Types, sizes_that_do_not_fit_are_refused) {
  EXPECT_EQ(
      refusal("func.func @main(%a: tensor<4611686018427387904x4xf32>) { return }"),
      "invalid_program: line 1, column 17: the size of tensor<4611686018427387904x4xf32> does not fit in 63 bits");
  // Strides within a tensor without elements are computed with as well.
  EXPECT_EQ(
      refusal("func.func @main(%a: tensor<0x4611686018427387904x4xf32>) { return }"),
      "invalid_program: line 1, column 17: the size of tensor<0x4611686018427387904x4xf32> does not fit in 63 bits");
}

}  // namespace
}  // namespace meshd::program
