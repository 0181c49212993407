// Accessors of attributes, printing of types, lookups.
#include <gtest/gtest.h>

#include <cstring>

#include "service/core/error.h"
#include "service/ir/program.h"

namespace meshd::ir {
namespace {

DenseAttr dense(tensor::DType dtype, tensor::Dims dims, std::vector<uint8_t> raw, bool splat = false) {
  DenseAttr out;
  out.type = {dtype, std::move(dims)};
  out.splat = splat;
  std::vector<std::byte> bytes(raw.size());
  std::memcpy(bytes.data(), raw.data(), raw.size());
  out.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return out;
}

TEST(Attributes, ints_of_three_kinds_of_lists_are_alike) {
  AttributeList list;
  list.emplace_back("array", Attribute{IntArrayAttr{{1, 2}, "i64"}});
  list.emplace_back("list", Attribute{ArrayAttr{{{IntegerAttr{1, "i64"}}, {IntegerAttr{2, "i64"}}}}});
  list.emplace_back("dense", Attribute{dense(tensor::DType::kInt16, {2}, {1, 0, 2, 0})});
  const std::vector<int64_t> expected{1, 2};
  EXPECT_EQ(ints(list, "array"), expected);
  EXPECT_EQ(ints(list, "list"), expected);
  EXPECT_EQ(ints(list, "dense"), expected);
}

TEST(Attributes, absent_ones_give_what_was_asked_for) {
  const AttributeList list;
  EXPECT_EQ(int_or(list, "a", 7), 7);
  EXPECT_TRUE(bool_or(list, "a", true));
  EXPECT_EQ(ints_or(list, "a", {3}), std::vector<int64_t>{3});
  EXPECT_EQ(string_or(list, "a", "x"), "x");
  EXPECT_THROW(ints(list, "a"), core::Error);
  EXPECT_THROW(dict(list, "a"), core::Error);
}

TEST(Attributes, wrong_kind_is_refused_by_name) {
  AttributeList list;
  list.emplace_back("a", Attribute{StringAttr{"x"}});
  try {
    int_or(list, "a", 0);
    FAIL() << "expected an error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code().word(), "invalid_program");
    EXPECT_EQ(error.detail(), "attribute 'a' must be an integer");
  }
}

TEST(Attributes, unit_counts_as_true) {
  AttributeList list;
  list.emplace_back("a", Attribute{Unit{}});
  list.emplace_back("b", Attribute{IntegerAttr{0, "i1"}});
  EXPECT_TRUE(bool_or(list, "a", false));
  EXPECT_FALSE(bool_or(list, "b", true));
}

TEST(Attributes, dense_ints_sign_and_splat) {
  EXPECT_EQ(dense_ints(dense(tensor::DType::kInt8, {2}, {0xFF, 1})), (std::vector<int64_t>{-1, 1}));
  EXPECT_EQ(dense_ints(dense(tensor::DType::kUint8, {2}, {0xFF, 1})), (std::vector<int64_t>{255, 1}));
  EXPECT_EQ(dense_ints(dense(tensor::DType::kInt8, {2, 2}, {5}, true)), (std::vector<int64_t>{5, 5, 5, 5}));
  EXPECT_THROW(dense_ints(dense(tensor::DType::kFloat32, {1}, {0, 0, 0, 0})), core::Error);
}

TEST(Attributes, dense_ints_of_a_huge_splat_is_refused) {
  EXPECT_THROW(dense_ints(dense(tensor::DType::kInt8, {int64_t{1} << 40}, {5}, true)), core::Error);
}

TEST(Types, are_printed_as_text_has_them) {
  const Type tensor = Type::of({tensor::DType::kComplex64, {2, tensor::kDynamicDim}});
  EXPECT_EQ(to_string(tensor), "tensor<2x?xcomplex<f32>>");
  EXPECT_EQ(to_string(Type::token()), "!stablehlo.token");
  EXPECT_EQ(to_string(Type{TypeKind::kTuple, {}, {tensor, Type::token()}}),
            "tuple<tensor<2x?xcomplex<f32>>, !stablehlo.token>");
}

TEST(Program, fail_says_where) {
  Location where;
  where.line = 3;
  where.column = 5;
  try {
    fail("invalid_program", where, "wrong");
    FAIL() << "expected an error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.detail(), "line 3, column 5: wrong");
    ASSERT_EQ(error.diagnostics().size(), 1U);
    EXPECT_EQ(error.diagnostics()[0].line, 3);
    EXPECT_EQ(error.diagnostics()[0].column, 5);
    EXPECT_EQ(error.diagnostics()[0].detail, "wrong");
  }
}

TEST(Program, lookups_find_by_name) {
  Module module;
  EXPECT_THROW(static_cast<void>(module.main()), core::Error);
  module.functions.emplace_back().name = "main";
  EXPECT_EQ(&module.main(), module.functions.data());
  EXPECT_EQ(module.find_function("other"), nullptr);
  EXPECT_EQ(module.find_mesh("mesh"), nullptr);
}

}  // namespace
}  // namespace meshd::ir
