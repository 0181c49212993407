// Accessors of attributes, printing of types, lookups, walks, the builder.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "service/core/error.h"
#include "service/ir/op_builder.h"
#include "service/ir/walk.h"

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

TEST(Attributes, set_replaces_or_adds) {
  AttributeList list{{"a", integer_attr(1)}, {"b", integer_attr(2)}};
  set(list, "a", integer_attr(7));
  set(list, "c", int_array_attr({3, 4}));
  EXPECT_EQ(list[0].name, "a");
  EXPECT_EQ(int_or(list, "a", 0), 7);
  EXPECT_EQ(int_or(list, "b", 0), 2);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(ints(list, "c"), (std::vector<int64_t>{3, 4}));
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

/// A table of ops for the builder: the code is the length of the name.
OpCode code_of(std::string_view name) {
  if (name == "unknown") throw core::Error("internal", "no row");
  return static_cast<OpCode>(name.size());
}

const Type kScalar = Type::of({tensor::DType::kFloat32, {}});

/// The example of walk.h: add, while { compare return } { multiply return }, return.
Function loop() {
  Function out;
  OpBuilder builder(out, code_of, out.body.ops);
  builder.create("add", {}, {kScalar});
  std::vector<Region> regions;
  for (const char* name : {"compare", "multiply"}) {
    regions.push_back(builder.region({kScalar}, [&](const std::vector<ValueId>& arguments) {
      const ValueId made = builder.create_one(name, arguments, kScalar);
      builder.create("return", {made}, {});
    }));
  }
  const std::vector<ValueId> results = builder.create("while", {0}, {kScalar}, {}, std::move(regions));
  builder.create("return", results, {});
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(Walk, visits_in_both_orders) {
  const Function function = loop();
  std::vector<std::string> before, after;
  EXPECT_FALSE(walk(function.body, [&](const Op& op) { before.push_back(op.name); }));
  EXPECT_FALSE(walk<WalkOrder::kPostOrder>(function.body, [&](const Op& op) { after.push_back(op.name); }));
  EXPECT_EQ(joined(before), "add while compare return multiply return return");
  EXPECT_EQ(joined(after), "add compare return multiply return while return");
}

TEST(Walk, skip_leaves_out_the_regions_of_one_op) {
  const Function function = loop();
  std::vector<std::string> seen;
  EXPECT_FALSE(walk(function.body, [&](const Op& op) {
    seen.push_back(op.name);
    return op.name == "while" ? WalkResult::kSkip : WalkResult::kAdvance;
  }));
  EXPECT_EQ(joined(seen), "add while return");
}

TEST(Walk, interrupt_ends_it_in_the_depth_too) {
  const Function function = loop();
  for (const bool post : {false, true}) {
    std::vector<std::string> seen;
    const auto until_compare = [&](const Op& op) {
      seen.push_back(op.name);
      return op.name == "compare" ? WalkResult::kInterrupt : WalkResult::kAdvance;
    };
    EXPECT_TRUE(post ? walk<WalkOrder::kPostOrder>(function.body, until_compare) : walk(function.body, until_compare));
    EXPECT_EQ(joined(seen), post ? "add compare" : "add while compare");
  }
}

TEST(Walk, visitor_gets_the_ops_around) {
  const Function function = loop();
  std::vector<std::string> seen;
  walk(function.body, [&](const Op& op, std::span<const Op* const> enclosing) {
    std::string path;
    for (const Op* around : enclosing) path += around->name + "/";
    seen.push_back(path + op.name);
  });
  EXPECT_EQ(joined(seen), "add while while/compare while/return while/multiply while/return return");
  // After a skipped op nothing is left on the path; of one op it begins at that op.
  seen.clear();
  walk<WalkOrder::kPostOrder>(function.body.ops[1], [&](const Op& op, std::span<const Op* const> enclosing) {
    seen.push_back(op.name + std::to_string(enclosing.size()));
  });
  EXPECT_EQ(joined(seen), "compare1 return1 multiply1 return1 while0");
}

TEST(Walk, mutable_visitor_changes_ops) {
  Function function = loop();
  walk(function.body, [](Op& op) { op.location.line = 7; });
  EXPECT_EQ(function.body.ops[1].regions[1].ops[0].location.line, 7);
}

TEST(Walk, first_and_any_look_into_regions) {
  const Function function = loop();
  const auto named = [](std::string_view name) { return [name](const Op& op) { return op.name == name; }; };
  EXPECT_EQ(first_op(function.body, named("return")), &function.body.ops[1].regions[0].ops[1]);
  EXPECT_EQ(first_op(function.body, named("absent")), nullptr);
  EXPECT_TRUE(any_op(function.body, named("multiply")));
  EXPECT_FALSE(any_op(function.body, named("absent")));
}

TEST(Walk, rewrite_goes_from_the_inside_out) {
  Function function = loop();
  std::vector<std::string> order;
  rewrite_ops(function.body, [&](Op&& op, std::vector<Op>& out) {
    order.push_back(op.name);
    if (op.name == "multiply") out.emplace_back().name = "in_front";
    if (op.name != "add") out.push_back(std::move(op));
  });
  EXPECT_EQ(joined(order), "add compare return multiply return while return");
  std::vector<std::string> left;
  walk(function.body, [&](const Op& op) { left.push_back(op.name); });
  EXPECT_EQ(joined(left), "while compare return in_front multiply return return");
}

TEST(OpBuilder, ops_get_codes_results_and_the_location) {
  Function function;
  OpBuilder builder(function, code_of, function.body.ops, {3, 5, {1}, 0, "here"});
  const ValueId left = builder.integer(4);
  const std::vector<ValueId> both = builder.create("pair", {left}, {kScalar, Type::token()}, {{"a", integer_attr(1)}});
  ASSERT_EQ(both.size(), 2U);
  const Op& made = function.body.ops.at(1);
  EXPECT_EQ(made.code, 4);
  EXPECT_EQ(made.operands, std::vector<ValueId>{left});
  EXPECT_EQ(made.results, both);
  EXPECT_EQ(int_or(made.attributes, "a", 0), 1);
  EXPECT_EQ(made.location.line, 3);
  EXPECT_EQ(made.location.calls, std::vector<int32_t>{1});
  EXPECT_TRUE(builder.type(both[1]).is_token());
  EXPECT_THROW(builder.create("unknown", {}, {}), core::Error);
  EXPECT_EQ(function.body.ops.size(), 2U);
}

TEST(OpBuilder, define_gives_values_that_are_there) {
  Function function;
  const ValueId value = function.add_value(kScalar, "%x");
  OpBuilder builder(function, code_of, function.body.ops);
  builder.define({value}, "made", {});
  EXPECT_EQ(function.values.size(), 1U);
  EXPECT_EQ(function.body.ops[0].results, std::vector<ValueId>{value});
}

TEST(OpBuilder, constants_have_their_bytes) {
  Function function;
  OpBuilder builder(function, code_of, function.body.ops);
  const auto value_of = [&](ValueId id) {
    return *find(function.body.ops.at(static_cast<size_t>(id)).attributes, "value")->as<DenseAttr>();
  };
  EXPECT_EQ(dense_ints(value_of(builder.integer(-2))), std::vector<int64_t>{-2});
  const ValueId list = builder.integers({5, 6});
  EXPECT_EQ(dense_ints(value_of(list)), (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(to_string(builder.type(list)), "tensor<2xi64>");
  const ValueId zeros = builder.zero({tensor::DType::kInt32, {2, 2}});
  EXPECT_TRUE(value_of(zeros).splat);
  EXPECT_EQ(dense_ints(value_of(zeros)), (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(value_of(zeros).bytes->size(), 4U);
}

TEST(OpBuilder, parts_and_wholes_have_their_shapes) {
  Function function;
  OpBuilder builder(function, code_of, function.body.ops);
  const auto shape = [&](ValueId id) { return to_string(builder.type(id)); };
  const ValueId iota = builder.iota({tensor::DType::kInt32, {7, 3}}, 1);
  EXPECT_EQ(shape(iota), "tensor<7x3xi32>");
  EXPECT_EQ(shape(builder.compare(iota, "LT", iota)), "tensor<7x3xi1>");
  const ValueId even = builder.slice(iota, {0, 0}, {7, 2}, {2, 1});
  EXPECT_EQ(shape(even), "tensor<4x2xi32>");
  const ValueId odd = builder.slice(iota, {1, 0}, {7, 2}, {2, 1});
  EXPECT_EQ(shape(odd), "tensor<3x2xi32>");
  EXPECT_EQ(shape(builder.slice(iota, {7, 0}, {7, 3})), "tensor<0x3xi32>");
  EXPECT_EQ(shape(builder.concatenate({even, odd, odd}, 0)), "tensor<10x2xi32>");
  EXPECT_EQ(builder.concatenate({odd}, 1), odd);
}

TEST(OpBuilder, guards_nest_and_give_the_insertion_point_back) {
  Function function;
  std::vector<Op> outer, inner;
  OpBuilder builder(function, code_of, function.body.ops);
  {
    const OpBuilder::InsertionGuard in_outer(builder, outer);
    builder.define({}, "a", {});
    {
      const OpBuilder::InsertionGuard in_inner(builder, inner);
      builder.define({}, "b", {});
    }
    builder.define({}, "c", {});
  }
  builder.define({}, "d", {});
  ASSERT_EQ(outer.size(), 2U);
  EXPECT_EQ(outer[1].name, "c");
  ASSERT_EQ(inner.size(), 1U);
  EXPECT_EQ(function.body.ops.at(0).name, "d");
}

TEST(OpBuilder, reducer_is_one_op_of_two_scalars) {
  Function function;
  const Region region = OpBuilder(function, code_of).reducer("stablehlo.add", kScalar);
  ASSERT_EQ(region.arguments.size(), 2U);
  ASSERT_EQ(region.ops.size(), 2U);
  EXPECT_EQ(region.ops[0].operands, region.arguments);
  EXPECT_EQ(region.ops[1].name, "stablehlo.return");
  EXPECT_EQ(region.ops[1].operands, region.ops[0].results);
}

TEST(OpBuilder, rename_reaches_regions_and_their_arguments) {
  Function function = loop();
  Op& op = function.body.ops[1];
  const ValueId argument = op.regions[0].arguments[0];
  rename_values(op, {{argument, 40}, {0, 41}});
  EXPECT_EQ(op.regions[0].arguments[0], 40);
  EXPECT_EQ(op.regions[0].ops[0].operands[0], 40);
  EXPECT_EQ(op.operands[0], 41);
  EXPECT_NE(op.regions[1].arguments[0], 40);
}

}  // namespace
}  // namespace meshd::ir
