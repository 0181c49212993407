// Constants of all element types in all their spellings, down to the bytes.
#include <bit>
#include <cmath>
#include <cstring>

#include "service/program/literals/float_literal.h"
#include "service/program/literals/hex.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

using tensor::DType;

std::string hex(const ir::DenseAttr& dense) { return encode_hex(*dense.bytes); }

template <typename T>
std::vector<T> values(const ir::DenseAttr& dense) {
  std::vector<T> out(dense.bytes->size() / sizeof(T));
  std::memcpy(out.data(), dense.bytes->data(), dense.bytes->size());
  return out;
}

TEST(Constants, splat_keeps_one_element) {
  const ir::DenseAttr dense = constant("dense<1.500000e+00> : tensor<2x3xf32>");
  EXPECT_TRUE(dense.splat);
  EXPECT_EQ(values<float>(dense), std::vector<float>{1.5F});
  EXPECT_EQ(dense.type.dims, (tensor::Dims{2, 3}));
}

TEST(Constants, lists_are_row_major) {
  const ir::DenseAttr dense = constant("dense<[[1, -2, 3], [4, 5, 0x10]]> : tensor<2x3xi32>");
  EXPECT_FALSE(dense.splat);
  EXPECT_EQ(values<int32_t>(dense), (std::vector<int32_t>{1, -2, 3, 4, 5, 16}));
}

TEST(Constants, lists_may_be_spread_over_lines_and_written_in_odd_ways) {
  const ir::DenseAttr lines = constant("dense<[[1.0, -2.5,\n 0x40400000], [4.0 ,5.0, \n6.25e-1]\n]> : tensor<2x3xf32>");
  EXPECT_EQ(values<float>(lines), (std::vector<float>{1, -2.5F, 3, 4, 5, 0.625F}));
  const ir::DenseAttr spaced = constant("dense<[1,2, // one and two\n -3, - 4, 0xF]> : tensor<5xi64>");
  EXPECT_EQ(values<int64_t>(spaced), (std::vector<int64_t>{1, 2, -3, -4, 15}));
}

TEST(Constants, one_element_is_a_splat_however_written) {
  const ir::DenseAttr list = constant("dense<[5]> : tensor<1xi8>");
  const ir::DenseAttr plain = constant("dense<5> : tensor<1xi8>");
  const ir::DenseAttr raw = constant("dense<\"0x05\"> : tensor<1xi8>");
  EXPECT_TRUE(list == plain);
  EXPECT_TRUE(raw == plain);
}

TEST(Constants, empty_ones_have_no_bytes) {
  for (const char* text : {"dense<> : tensor<0x3xf32>", "dense<1.0> : tensor<0x3xf32>", "dense<[]> : tensor<0x3xf32>",
                           "dense<\"0x\"> : tensor<0x3xf32>"}) {
    const ir::DenseAttr dense = constant(text);
    EXPECT_TRUE(dense.bytes->empty()) << text;
    EXPECT_FALSE(dense.splat) << text;
  }
  EXPECT_TRUE(constant("dense<[[], []]> : tensor<2x0xi4>").bytes->empty());
}

TEST(Constants, special_floats_are_bits) {
  EXPECT_EQ(hex(constant("dense<0x7FC00000> : tensor<f32>")), "0x0000C07F");
  EXPECT_EQ(hex(constant("dense<[0x7F800000, 1.0, 0xFF800000]> : tensor<3xf32>")), "0x0000807F0000803F000080FF");
  EXPECT_EQ(hex(constant("dense<0xFFF0000000000000> : tensor<f64>")), "0x000000000000F0FF");
  EXPECT_EQ(hex(constant("dense<0x7C00> : tensor<f16>")), "0x007C");
  EXPECT_EQ(hex(constant("dense<0xFF80> : tensor<bf16>")), "0x80FF");
  EXPECT_EQ(hex(constant("dense<-0.000000e+00> : tensor<f32>")), "0x00000080");
}

TEST(Constants, complex_numbers_are_pairs) {
  EXPECT_EQ(values<float>(constant("dense<(1.0,-2.0)> : tensor<2xcomplex<f32>>")), (std::vector<float>{1, -2}));
  EXPECT_EQ(values<double>(constant("dense<[(1.0,2.0), (0x7FF0000000000000, 4.5)]> : tensor<2xcomplex<f64>>")),
            (std::vector<double>{1, 2, INFINITY, 4.5}));
}

TEST(Constants, small_integers_take_a_byte_with_their_sign) {
  EXPECT_EQ(hex(constant("dense<[-1, -8, 7, 15]> : tensor<4xi4>")), "0xFFF807FF");
  EXPECT_EQ(hex(constant("dense<[0, 15]> : tensor<2xui4>")), "0x000F");
  EXPECT_EQ(hex(constant("dense<[-2, 1, 3]> : tensor<3xi2>")), "0xFE01FF");
  EXPECT_EQ(hex(constant("dense<\"0x0F08\"> : tensor<2xi4>")), "0xFFF8");
  EXPECT_EQ(hex(constant("dense<\"0x0F08\"> : tensor<2xui4>")), "0x0F08");
}

TEST(Constants, booleans_are_zero_or_one) {
  EXPECT_EQ(hex(constant("dense<[true, false, true]> : tensor<3xi1>")), "0x010001");
  EXPECT_EQ(hex(constant("dense<true> : tensor<3xi1>")), "0x01");
  EXPECT_EQ(hex(constant("dense<\"0x01000101\"> : tensor<4xi1>")), "0x01000101");
  EXPECT_EQ(hex(constant("dense<\"0x0503\"> : tensor<10xi1>")), "0x01000100000000000101")
      << "packed bits of older texts";
  EXPECT_EQ(hex(constant("dense<\"0xFF\"> : tensor<3xi1>")), "0x01");
}

TEST(Constants, unsigned_ones_use_all_bits) {
  EXPECT_EQ(hex(constant("dense<18446744073709551615> : tensor<ui64>")), "0xFFFFFFFFFFFFFFFF");
  EXPECT_EQ(hex(constant("dense<-9223372036854775808> : tensor<i64>")), "0x0000000000000080");
  EXPECT_EQ(hex(constant("dense<255> : tensor<i8>")), "0xFF") << "signless: 255 and -1 are the same";
}

TEST(Constants, hex_is_raw_little_endian) {
  EXPECT_EQ(values<float>(constant("dense<\"0x0000803F00000040\"> : tensor<2xf32>")), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<float>(constant("dense<\"0x0000803f\"> : tensor<4xf32>")), std::vector<float>{1}) << "a splat";
  EXPECT_TRUE(constant("dense<\"0x0000803F\"> : tensor<4xf32>").splat);
}

TEST(Constants, resources_come_from_the_end_of_the_file) {
  const ir::Module module = parse_unverified(R"(module {
  func.func @main() {
    %0 = stablehlo.constant dense_resource<w.0> : tensor<2xf32>
    return
  }
}
{-#
  dialect_resources: {
    builtin: {
      w.0: "0x040000000000803F00000040"
    }
  },
  external_resources: { mlir_reproducer: { verify: true } }
#-}
)");
  const auto* dense = ir::find(module.main().body.ops[0].attributes, "value")->as<ir::DenseAttr>();
  EXPECT_EQ(values<float>(*dense), (std::vector<float>{1, 2}));
}

TEST(Constants, wrong_ones_are_refused) {
  const auto message = [](const std::string& dense) {
    return refusal("func.func @main() {\n  %0 = stablehlo.constant " + dense + "\n  return\n}");
  };
  EXPECT_EQ(message("dense<[1, 2]> : tensor<3xi32>"),
            "program_syntax: line 2, column 33: a list of a constant has 2 elements, but its type is tensor<3xi32>");
  EXPECT_EQ(message("dense<[1, 2, 3000000000000]> : tensor<3xi32>"),
            "program_syntax: line 2, column 40: the number 3000000000000 does not fit in i32");
  EXPECT_EQ(
      message("dense<[1.0,\n2.0, 3]> : tensor<3xf32>"),
      "program_syntax: line 3, column 6: expected a number with a point, such as 1.0, or its bits in hex, got '3'");
  EXPECT_EQ(message("dense<[1, 2]]> : tensor<2xi32>"),
            "program_syntax: line 2, column 39: expected '>' at the end of a constant, got ']'");
  EXPECT_EQ(message("dense<256> : tensor<ui8>"),
            "program_syntax: line 2, column 33: the number 256 does not fit in ui8");
  EXPECT_EQ(message("dense<-1> : tensor<ui8>"), "program_syntax: line 2, column 34: the number -1 does not fit in ui8");
  EXPECT_EQ(
      message("dense<1> : tensor<f32>"),
      "program_syntax: line 2, column 33: expected a number with a point, such as 1.0, or its bits in hex, got '1'");
  EXPECT_EQ(message("dense<1.0> : tensor<i32>"), "program_syntax: line 2, column 33: expected an integer, got '1.0'");
  EXPECT_EQ(message("dense<0x1FFFF> : tensor<f16>"),
            "program_syntax: line 2, column 33: the bits '0x1FFFF' do not fit in 16 bits");
  EXPECT_EQ(message("dense<\"0x00\"> : tensor<2xf32>"),
            "program_syntax: line 2, column 33: the constant has 1 bytes, but tensor<2xf32> has 8");
  EXPECT_EQ(message("dense<\"0x0g\"> : tensor<2xi8>"),
            "program_syntax: line 2, column 33: expected \"0x\" and an even number of hex digits");
  EXPECT_EQ(message("dense<> : tensor<2xi8>"),
            "program_syntax: line 2, column 33: the constant is empty, but its type is tensor<2xi8>");
  EXPECT_EQ(message("dense<0> : tensor<?xi8>"),
            "invalid_program: line 2, column 27: the type of a constant has a dynamic dimension");
  EXPECT_EQ(message("dense<[1]> : tensor<9223372036854775807x2xi8>"),
            "invalid_program: line 2, column 27: a constant does not fit in memory");
  EXPECT_EQ(message("dense_resource<w> : tensor<2xi8>"),
            "invalid_program: line 2, column 42: resource 'w' is not at the end of the file");
}

TEST(Floats, round_to_nearest_even) {
  EXPECT_EQ(float_bits(DType::kFloat16, 65504.0), 0x7BFFU);
  EXPECT_EQ(float_bits(DType::kFloat16, 65520.0), 0x7C00U) << "half way to what is too large";
  EXPECT_EQ(float_bits(DType::kFloat16, 0x1p-25), 0U) << "half of the least, to even";
  EXPECT_EQ(float_bits(DType::kFloat16, 0x1.8p-25), 1U);
  EXPECT_EQ(float_bits(DType::kFloat16, 0x1p-14), 0x0400U);
  EXPECT_EQ(float_bits(DType::kBfloat16, 1.00390625), 0x3F80U) << "a tie goes to even";
  EXPECT_EQ(float_bits(DType::kBfloat16, -1.0), 0xBF80U);
  EXPECT_EQ(float_bits(DType::kFloat8E4M3FN, 448.0), 0x7EU);
  EXPECT_EQ(float_bits(DType::kFloat8E4M3FN, 1000.0), 0x7FU) << "no infinity: not a number";
  EXPECT_EQ(float_bits(DType::kFloat8E4M3, 240.0), 0x77U);
  EXPECT_EQ(float_bits(DType::kFloat8E4M3, 1000.0), 0x78U);
  EXPECT_EQ(float_bits(DType::kFloat8E5M2, -57344.0), 0xFBU);
  EXPECT_EQ(float_bits(DType::kFloat8E5M2FNUZ, -0.0), 0U) << "no negative zero";
  EXPECT_EQ(float_bits(DType::kFloat8E4M3FNUZ, NAN), 0x80U);
  EXPECT_EQ(float_bits(DType::kFloat8E4M3FNUZ, 1.0), 0x40U);
  EXPECT_EQ(float_bits(DType::kFloat8E4M3B11FNUZ, 1.0), 0x58U);
  EXPECT_EQ(float_bits(DType::kFloat8E3M4, 15.5), 0x6FU);
  EXPECT_EQ(float_bits(DType::kFloat8E8M0FNU, 1.0), 127U);
  EXPECT_EQ(float_bits(DType::kFloat8E8M0FNU, 3.0), 129U);
  EXPECT_EQ(float_bits(DType::kFloat8E8M0FNU, 1e300), 0xFFU) << "no infinity: not a number";
}

TEST(Floats, bits_are_decoded_as_their_type_says) {
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (!tensor::is_float(row.dtype)) continue;
    EXPECT_EQ(float_value(row.dtype, float_bits(row.dtype, 2.0)), 2.0) << row.name;
    EXPECT_EQ(float_value(row.dtype, float_bits(row.dtype, 0.5)), 0.5) << row.name;
  }
  EXPECT_EQ(float_value(DType::kFloat8E8M0FNU, 0), 0x1p-127);
  EXPECT_TRUE(std::isnan(float_value(DType::kFloat8E8M0FNU, 0xFF)));
  const ir::Op op = first_op("%a: tensor<i32>", "tensor<i32>",
                             "    %0 = stablehlo.add %a, %a {foo = 0.0 : f8E8M0FNU} : tensor<i32>\n    return %0 : "
                             "tensor<i32>");
  EXPECT_EQ(ir::find(op.attributes, "foo")->as<ir::FloatAttr>()->value, 0x1p-127);
}

TEST(Hex, decodes_what_it_encodes) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<std::byte>(i));
  std::vector<std::byte> back;
  ASSERT_TRUE(decode_hex(encode_hex(bytes), back));
  EXPECT_EQ(back, bytes);
  for (const char* bad : {"", "0", "00", "0x0", "0xG0", "0x0G", "x0"}) EXPECT_FALSE(decode_hex(bad, back)) << bad;
}

}  // namespace
}  // namespace meshd::program
