// Types of ops with regions, tokens, tuples and shardings.
#include <gtest/gtest.h>

#include <string>

#include "service/ops/kernel_interface.h"
#include "tests/unit/ops/support.h"

namespace meshd::ops {
namespace {

using test::append;
using test::error_of;
using test::Instance;
using test::type;
using test::types;

const OpDef& row(std::string_view name) { return *find_op(name); }

/// A region of `arguments` that returns values of `returned`.
ir::Region region(ir::Function& function, const std::vector<ir::Type>& arguments, const std::vector<ir::Type>& returned,
                  std::string_view terminator = "stablehlo.return") {
  ir::Region out;
  for (const ir::Type& argument : arguments) out.arguments.push_back(function.add_value(argument, "%arg"));
  std::vector<ir::ValueId> values;
  for (const ir::Type& result : returned) values.push_back(function.add_value(result, "%v"));
  append(function, out, terminator, std::move(values), {});
  return out;
}

Instance loop(const std::vector<ir::Type>& carried, const std::vector<ir::Type>& verdict,
              const std::vector<ir::Type>& next) {
  Instance out{.operands = carried, .results = carried};
  out.regions.push_back(region(out.function, carried, verdict));
  out.regions.push_back(region(out.function, carried, next));
  return out;
}

TEST(Control, while_carries_its_types) {
  const auto carried = types({"token", "i32", "2x3xf32"});
  EXPECT_EQ(row("stablehlo.while").infer(loop(carried, types({"i1"}), carried).view()), carried);
  EXPECT_NE(
      error_of([&] { row("stablehlo.while").infer(loop(carried, types({"i32"}), carried).view()); }).find("while C1"),
      std::string::npos);
  EXPECT_EQ(error_of([&] { row("stablehlo.while").infer(loop(types({"i32"}), types({"i1"}), types({"f32"})).view()); }),
            "invalid_program: line 7, column 3: while C2: body must return values of the carried types (expected "
            "(tensor<i32>), got "
            "(tensor<f32>))");
}

TEST(Control, branches_return_one_list_of_types) {
  Instance choice{.operands = types({"i32"}), .results = types({"4xf32"})};
  choice.regions = {region(choice.function, {}, types({"4xf32"})), region(choice.function, {}, types({"4xf32"}))};
  EXPECT_EQ(row("stablehlo.case").infer(choice.view()), types({"4xf32"}));
  choice.regions.push_back(region(choice.function, {}, types({"4xf64"})));
  EXPECT_NE(error_of([&] { row("stablehlo.case").infer(choice.view()); }).find("case C3: branch 2"), std::string::npos);
  choice.operands = types({"i1"});
  EXPECT_NE(error_of([&] { row("stablehlo.case").infer(choice.view()); }).find("case I1"), std::string::npos);
  choice.regions.pop_back();
  EXPECT_EQ(row("stablehlo.if").infer(choice.view()), types({"4xf32"}));
}

TEST(Structural, constant_has_the_type_of_its_elements) {
  Instance constant{
      .operands = {}, .results = types({"2x2xi64"}), .attributes = {{"value", test::dense({{1, 2}, {3, 4}})}}};
  EXPECT_EQ(row("stablehlo.constant").infer(constant.view()), types({"2x2xi64"}));
  constant.results = types({"4xi64"});
  EXPECT_NE(error_of([&] { row("stablehlo.constant").infer(constant.view()); }).find("constant C1"), std::string::npos);
  constant.attributes.clear();
  EXPECT_NE(error_of([&] { row("stablehlo.constant").infer(constant.view()); }).find("constant I1"), std::string::npos);
}

TEST(Structural, tuples_hold_their_elements) {
  const Instance tuple{.operands = types({"4xf32", "token"}), .results = {}};
  const auto made = row("stablehlo.tuple").infer(tuple.view());
  ASSERT_EQ(made.size(), 1U);
  Instance element{
      .operands = made, .results = {}, .attributes = {{"index", test::attribute(ir::IntegerAttr{1, "i32"})}}};
  EXPECT_EQ(row("stablehlo.get_tuple_element").infer(element.view()), types({"token"}));
  element.attributes = {{"index", test::attribute(ir::IntegerAttr{2, "i32"})}};
  EXPECT_NE(error_of([&] { row("stablehlo.get_tuple_element").infer(element.view()); }).find("C1"), std::string::npos);
}

TEST(Structural, get_dimension_size_of_a_cut_operand_is_the_global_size) {
  const Instance global{.operands = types({"8x6xf32"}),
                        .results = types({"i32"}),
                        .attributes = {{"dimension", test::attribute(ir::IntegerAttr{0, "i64"})}}};
  const OpDef& def = row("stablehlo.get_dimension_size");
  EXPECT_EQ(sharding::to_sdy(*rule_of(def, global.view())), "([i, j])->([]) {i=8, j=6}");
  Instance local = global;
  local.operands = types({"2x6xf32"});
  local.attributes = def.localize(global.view(), local.view());
  const PreparedKernel kernel = std::get<LocalKernel>(def.body).prepare(local.view());
  int32_t size = 0;
  auto* result = reinterpret_cast<std::byte*>(&size);
  kernel.run({.results = &result, .begin = 0, .end = 1});
  EXPECT_EQ(size, 8);
}

/// A manual computation over mesh x=4, y=2 whose operand has `axes` on dimension 0.
Instance manual(std::vector<int> axes, const ir::Type& inner) {
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 4}, {"y", 2}}, {}, {}});
  sharding::TensorSharding cut = sharding::fully_replicated("mesh", mesh, 2);
  for (const int axis : axes) cut.dims[0].axes.push_back({.axis = axis});
  ir::ShardingAttr shardings{{cut}, true};
  Instance out{.operands = types({"8x6xf32"}), .results = types({"8x6xf32"})};
  out.attributes = {{"in_shardings", test::attribute(shardings)},
                    {"out_shardings", test::attribute(shardings)},
                    {"manual_axes", test::attribute(ir::ArrayAttr{{test::attribute(ir::StringAttr{"x"})}})}};
  out.regions.push_back(region(out.function, {inner}, {inner}, "sdy.return"));
  return out;
}

TEST(ShardingOps, manual_computation_has_local_types_inside) {
  const OpDef& def = row("sdy.manual_computation");
  EXPECT_EQ(error_of([&] { def.infer(manual({0}, type("2x6xf32")).view()); }), "");
  EXPECT_EQ(error_of([&] { def.infer(manual({0, 1}, type("2x6xf32")).view()); }), "") << "free axes cut nothing";
  EXPECT_EQ(error_of([&] { def.infer(manual({0}, type("8x6xf32")).view()); }),
            "invalid_program: line 7, column 3: manual_computation: argument 0 of the body must have the local type "
            "(expected "
            "tensor<2x6xf32>, got tensor<8x6xf32>)");
  EXPECT_NE(error_of([&] {
              def.infer(manual({1, 0}, type("2x6xf32")).view());
            }).find("manual axes must come before free axes"),
            std::string::npos);
}

TEST(ShardingOps, constraint_must_fit_the_rank) {
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 4}}, {}, {}});
  Instance constraint{.operands = types({"8x6xf32"}), .results = types({"8x6xf32"})};
  constraint.attributes = {
      {"sharding", test::attribute(ir::ShardingAttr{{sharding::fully_replicated("mesh", mesh, 2)}, false})}};
  EXPECT_EQ(row("sdy.sharding_constraint").infer(constraint.view()), constraint.results);
  constraint.attributes = {
      {"sharding", test::attribute(ir::ShardingAttr{{sharding::fully_replicated("mesh", mesh, 1)}, false})}};
  EXPECT_NE(error_of([&] { row("sdy.sharding_constraint").infer(constraint.view()); }).find("invalid_spec"),
            std::string::npos);
}

}  // namespace
}  // namespace meshd::ops
