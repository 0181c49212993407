// Scalars and shapes of the dialects arith, tensor and shape: read as ops of StableHLO, and followed to shapes.
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

using tensor::DType;

std::string read(const std::string& text) { return print_generic(*parse_stablehlo(text)); }

/// The type of the first result where @main gets float32 of these dims.
std::string result_of(const std::string& text, const std::vector<tensor::Dims>& arguments) {
  std::vector<tensor::TensorType> types;
  for (const tensor::Dims& dims : arguments) types.push_back({DType::kFloat32, dims});
  return ir::to_string(specialise(inline_calls(*parse_stablehlo(text)), types).main().results.at(0).type);
}

TEST(Scalars, are_read_as_tensors_without_dimensions) {
  EXPECT_EQ(read(R"(func.func @main(%a: tensor<2x3xf32>) -> tensor<2xi32> {
  %c = arith.constant 1 : index
  %d = tensor.dim %a, %c : tensor<2x3xf32>
  %n = arith.index_cast %d : index to i32
  %0 = tensor.from_elements %n, %n : tensor<2xi32>
  return %0 : tensor<2xi32>
})"),
            read(R"(func.func @main(%a: tensor<2x3xf32>) -> tensor<2xi32> {
  %c = stablehlo.constant dense<1> : tensor<i64>
  %s = stablehlo.get_dimension_size %a, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
  %d = stablehlo.convert %s : (tensor<i32>) -> tensor<i64>
  %n = stablehlo.convert %d : (tensor<i64>) -> tensor<i32>
  %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %q = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %0 = stablehlo.concatenate %r, %q, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
})"));
}

TEST(Scalars, ops_on_unsigned_numbers_give_the_type_of_the_text_behind_any_number_of_ops) {
  std::string before;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(refusal("func.func @main(%a: tensor<4xi16>) -> tensor<4xi16> {\n" + before +
                      "  %0 = arith.divui %a, %a : tensor<4xi16>\n  return %0 : tensor<4xi16>\n}\n"),
              "none")
        << i;
    before += "  %x" + std::to_string(i) + " = stablehlo.add %a, %a : tensor<4xi16>\n";
  }
}

TEST(Scalars, generic_forms_are_the_pretty_ones) {
  EXPECT_EQ(
      read(R"(func.func @main(%a: tensor<?x3xf32>, %t: tensor<2xi64>) -> (tensor<i1>, tensor<2xi64>, tensor<i64>) {
  %c = "arith.constant"() <{value = 1 : index}> : () -> index
  %d = "tensor.dim"(%a, %c) : (tensor<?x3xf32>, index) -> index
  %e = "tensor.extract"(%t, %c) : (tensor<2xi64>, index) -> i64
  %f = "arith.addi"(%d, %c) <{overflowFlags = #arith.overflow<none>}> : (index, index) -> index
  %l = "arith.cmpi"(%f, %e) <{predicate = 2 : i64}> : (index, i64) -> i1
  %s = "shape.shape_of"(%a) : (tensor<?x3xf32>) -> tensor<2xindex>
  %n = "shape.num_elements"(%s) : (tensor<2xindex>) -> index
  return %l, %s, %n : tensor<i1>, tensor<2xi64>, tensor<i64>
})"),
      read(R"(func.func @main(%a: tensor<?x3xf32>, %t: tensor<2xi64>) -> (tensor<i1>, tensor<2xi64>, tensor<i64>) {
  %c = arith.constant 1 : index
  %d = tensor.dim %a, %c : tensor<?x3xf32>
  %e = tensor.extract %t[%c] : tensor<2xi64>
  %f = arith.addi %d, %c : index
  %l = arith.cmpi slt, %f, %e : i64
  %s = shape.shape_of %a : tensor<?x3xf32> -> tensor<2xindex>
  %n = shape.num_elements %s : tensor<2xindex> -> index
  return %l, %s, %n : tensor<i1>, tensor<2xi64>, tensor<i64>
})"));
}

TEST(Scalars, constants_of_every_kind) {
  const auto value = [](const std::string& number, const std::string& type) {
    return read("func.func @main() -> tensor<" + type + "> {\n  %0 = arith.constant " + number +
                "\n  return %0 : tensor<" + type + ">\n}");
  };
  const auto dense = [](const std::string& number, const std::string& type) {
    return read("func.func @main() -> tensor<" + type + "> {\n  %0 = stablehlo.constant dense<" + number +
                "> : tensor<" + type + ">\n  return %0 : tensor<" + type + ">\n}");
  };
  EXPECT_EQ(value("-1 : i8", "i8"), dense("-1", "i8"));
  EXPECT_EQ(value("15 : i4", "i4"), dense("-1", "i4"));
  EXPECT_EQ(value("true", "i1"), dense("true", "i1"));
  EXPECT_EQ(value("-2.5 : bf16", "bf16"), dense("-2.5", "bf16"));
  EXPECT_EQ(value("0xFF80 : bf16", "bf16"), dense("0xFF80", "bf16"));
  EXPECT_EQ(value("0x7F800000 : f32", "f32"), dense("0x7F800000", "f32"));
  EXPECT_EQ(value("dense<[1, 2]> : tensor<2xi32>", "2xi32"), dense("[1, 2]", "2xi32"));
}

// As numbers of one bit, which as signed ones are 0 and -1.
TEST(Scalars, booleans_are_numbers_of_one_bit) {
  const auto names = [](const std::string& op, const std::string& given, const std::string& made) {
    const auto module = parse_stablehlo("func.func @main(%a: tensor<" + given + ">) -> tensor<" + made +
                                        "> {\n  %0 = " + op + "\n  return %0 : tensor<" + made + ">\n}");
    std::string out;
    for (const ir::Op& each : module->main().body.ops) out += each.name.substr(each.name.find('.') + 1) + " ";
    return out;
  };
  EXPECT_EQ(names("arith.addi %a, %a : i1", "i1", "i1"), "xor return ");
  EXPECT_EQ(names("arith.maxsi %a, %a : i1", "i1", "i1"), "and return ");
  EXPECT_EQ(names("arith.minsi %a, %a : i1", "i1", "i1"), "or return ");
  EXPECT_EQ(names("arith.maxsi %a, %a : i8", "i8", "i8"), "maximum return ");
  EXPECT_EQ(names("arith.extsi %a : i1 to i8", "i1", "i8"), "convert negate return ");
  EXPECT_EQ(names("arith.extui %a : i1 to i8", "i1", "i8"), "convert return ");
  EXPECT_EQ(names("arith.trunci %a : i8 to i1", "i8", "i1"), "constant convert and convert return ");
  EXPECT_EQ(names("arith.index_cast %a : index to i1", "i64", "i1"), "constant and convert return ");
  EXPECT_EQ(names("arith.index_castui %a : index to i1", "i64", "i1"), "convert constant convert and convert return ");
}

TEST(Scalars, sizes_that_are_computed_give_shapes) {
  // Twice as many rows, by a dimension whose number is no constant either.
  const std::string text = R"(func.func @main(%a: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : i64
  %one = arith.addi %c0, %c1 : index
  %d0 = tensor.dim %a, %c0 : tensor<?x?xf32>
  %d1 = tensor.dim %a, %one : tensor<?x?xf32>
  %n0 = arith.index_cast %d0 : index to i64
  %n1 = arith.index_cast %d1 : index to i64
  %twice = arith.muli %n0, %c2 : i64
  %flat = arith.muli %twice, %n1 : i64
  %s = tensor.from_elements %c2, %n0, %n1 : tensor<3xi64>
  %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1, 2] : (tensor<?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  %t = tensor.from_elements %twice, %n1 : tensor<2xi64>
  %1 = stablehlo.dynamic_reshape %0, %t : (tensor<?x?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
})";
  EXPECT_EQ(result_of(text, {{3, 5}}), "tensor<6x5xf32>");
}

TEST(Scalars, shapes_are_broadcast) {
  const std::string text = R"(func.func @main(%a: tensor<?x1xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32> {
  %s = shape.shape_of %a : tensor<?x1xf32> -> tensor<2xindex>
  %t = shape.shape_of %b : tensor<?xf32> -> tensor<1xindex>
  %u = shape.const_shape [1, 1, 1] : tensor<3xindex>
  %v = shape.broadcast %s, %t : tensor<2xindex>, tensor<1xindex> -> tensor<2xindex>
  %0 = stablehlo.dynamic_broadcast_in_dim %b, %v, dims = [1] : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
})";
  EXPECT_EQ(result_of(text, {{4, 1}, {7}}), "tensor<4x7xf32>");
  EXPECT_EQ(result_of(text, {{4, 1}, {1}}), "tensor<4x1xf32>");
}

TEST(Scalars, casts_of_tensors_give_the_shape_that_the_arguments_have) {
  const std::string text = R"(func.func @main(%a: tensor<?xf32>) -> tensor<3xf32> {
  %0 = tensor.cast %a : tensor<?xf32> to tensor<3xf32>
  return %0 : tensor<3xf32>
})";
  EXPECT_EQ(result_of(text, {{3}}), "tensor<3xf32>");
  EXPECT_THROW(result_of(text, {{4}}), core::Error);
}

TEST(Scalars, what_is_wrong_is_named) {
  const auto body = [](const std::string& text) {
    return refusal("func.func @main(%a: tensor<2x?xf32>, %s: tensor<?xindex>) {\n" + text + "\n  return\n}");
  };
  EXPECT_EQ(body("  %0 = arith.ceildivsi %a, %a : i64"),
            "unsupported_op: line 2, column 8: op 'arith.ceildivsi' is not supported");
  EXPECT_EQ(body("  %0 = arith.constant 4 : i32\n  %1 = arith.addi %0, %0 : i64"),
            "invalid_program: line 3, column 3: operand %0 of 'arith.addi' is used as tensor<i64>, but its type is "
            "tensor<i32>");
  EXPECT_EQ(body("  %0 = shape.num_elements %s : tensor<?xindex> -> index"),
            "unsupported_type: line 2, column 8: 'shape.num_elements' takes sizes of a known number, such as "
            "tensor<2xindex>, got tensor<?xi64>");
  EXPECT_EQ(body("  %0 = arith.constant 1.0 : f32\n  %1 = arith.cmpf ueq, %0, %0 : f32"),
            "unsupported_op: line 3, column 8: 'arith.cmpf' with the predicate ueq is not supported");
  EXPECT_EQ(body("  %0 = tensor.extract %a[] : tensor<2x?xf32>"),
            "invalid_program: line 2, column 8: 'tensor.extract' takes a tensor and an index for each of its "
            "dimensions");
  EXPECT_EQ(body("  %0 = stablehlo.constant dense<1> : tensor<999999999xi64>\n  %1 = shape.broadcast %0, %0 : "
                 "tensor<999999999xindex>, tensor<999999999xindex> -> tensor<999999999xindex>"),
            "unsupported_type: line 3, column 8: 'shape.broadcast' takes sizes of a known number, such as "
            "tensor<2xindex>, got tensor<999999999xi64>");
  EXPECT_EQ(body("  %0 = arith.constant 4 : i32\n  %1 = arith.addi %0, %0 : ()"),
            "program_syntax: line 4, column 3: expected the types of 'arith.addi'");
  EXPECT_EQ(body("  %0:2 = arith.constant 4 : i32"),
            "invalid_program: line 2, column 10: 'arith.constant' has 1 results, but 2 are named");
  EXPECT_EQ(body("  %0 = stablehlo.constant 4 : i32"),
            "program_syntax: line 2, column 27: expected dense<...> behind 'stablehlo.constant', got '4'");
}

}  // namespace
}  // namespace meshd::program
