// What holds of every row.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "service/ops/fixed_string.h"
#include "service/ops/linalg/custom_calls.h"
#include "tests/unit/ops/support.h"

namespace meshd::ops {
namespace {

TEST(OpTable, names_are_found_and_codes_lead_back) {
  ASSERT_FALSE(all_ops().empty());
  for (const OpDef& def : all_ops()) {
    EXPECT_EQ(find_op(def.name), &def) << def.name;
    EXPECT_EQ(&op(code_of(def)), &def) << def.name;
  }
  EXPECT_EQ(find_op("stablehlo.no_such_op"), nullptr);
  EXPECT_EQ(find_op("add"), nullptr) << "names are full";
}

TEST(OpTable, every_row_says_what_it_is) {
  for (const OpDef& def : all_ops()) {
    EXPECT_FALSE(def.summary.empty()) << def.name;
    EXPECT_NE(def.infer, nullptr) << def.name;
    EXPECT_NE(def.example.find("func.func public @main"), std::string_view::npos) << def.name;
    EXPECT_NE(def.example.find(mnemonic(def.name)), std::string_view::npos) << def.name;
    EXPECT_EQ(def.example.back(), '\n') << def.name;
    EXPECT_NE(def.name.find('.'), std::string_view::npos) << def.name;
  }
}

TEST(OpTable, signatures_are_consistent) {
  for (const OpDef& def : all_ops()) {
    EXPECT_GE(def.signature.operand_min, 0) << def.name;
    EXPECT_TRUE(def.signature.operand_max == -1 || def.signature.operand_max >= def.signature.operand_min) << def.name;
    std::set<std::string_view> names;
    for (const AttributeSpec& attribute : def.signature.attributes) {
      EXPECT_TRUE(names.insert(attribute.name).second) << def.name << " " << attribute.name;
      EXPECT_FALSE(attribute.doc.empty()) << def.name << " " << attribute.name;
    }
  }
}

TEST(OpTable, bodies_have_what_runs_them) {
  for (const OpDef& def : all_ops()) {
    if (const auto* kernel = std::get_if<LocalKernel>(&def.body)) {
      EXPECT_NE(kernel->prepare, nullptr) << def.name;
    }
    if (const auto* group = std::get_if<GroupKernel>(&def.body)) {
      EXPECT_NE(group->prepare, nullptr) << def.name;
      EXPECT_NE(group->groups, nullptr) << def.name;
    }
  }
}

TEST(OpTable, rule_on_the_op_goes_before_the_rows) {
  test::Instance add{.operands = test::types({"8x16xf32", "8x16xf32"}), .results = test::types({"8x16xf32"})};
  sharding::FactorRule written = *rule_of(*find_op("stablehlo.add"), add.view());
  EXPECT_EQ(sharding::to_sdy(written), "([i, j], [i, j])->([i, j]) {i=8, j=16}");
  written.is_custom = true;
  add.attributes = {{"sdy.sharding_rule", test::attribute(ir::ShardingRuleAttr{written})}};
  EXPECT_TRUE(rule_of(*find_op("stablehlo.add"), add.view())->is_custom);
  written.results[0].pop_back();
  add.attributes = {{"sdy.sharding_rule", test::attribute(ir::ShardingRuleAttr{written})}};
  EXPECT_EQ(
      test::error_of([&] { rule_of(*find_op("stablehlo.add"), add.view()); }),
      "invalid_program: line 7, column 3: sdy.sharding_rule maps 1 dimensions of result 0, which is tensor<8x16xf32>");
}

TEST(OpTable, effects_are_instances) {
  test::Instance call{.operands = {}, .results = {}};
  const OpDef& def = *find_op("stablehlo.custom_call");
  EXPECT_FALSE(has_effect(def, call.view()));
  call.attributes = {{"has_side_effect", test::attribute(ir::IntegerAttr{1, "i1"})}};
  EXPECT_TRUE(has_effect(def, call.view()));
  EXPECT_TRUE(has_effect(*find_op("stablehlo.return"), test::Instance{}.view()));
  EXPECT_FALSE(has_effect(*find_op("stablehlo.add"), test::Instance{}.view()));
}

TEST(OpTable, facts_name_what_the_signature_has) {
  for (const OpDef& row : all_ops()) {
    const auto has = [&](std::string_view attribute) {
      const auto& known = row.signature.attributes;
      return std::any_of(known.begin(), known.end(), [&](const AttributeSpec& spec) { return spec.name == attribute; });
    };
    for (const TextField& field : row.text.fields) {
      EXPECT_TRUE(field.attribute.empty() || has(field.attribute)) << row.name << " has no " << field.attribute;
      EXPECT_EQ(field.kind == FieldKind::kEnum, !field.kind_name.empty()) << row.name << " " << field.key;
    }
    EXPECT_TRUE(row.text.fields.empty() || row.text.shape == TextShape::kFields) << row.name;
    EXPECT_TRUE(row.axes.attribute.empty() || has(row.axes.attribute)) << row.name;
    EXPECT_EQ(row.axes.effect != AxesEffect::kNone, row.text.shape == TextShape::kSdyCollective) << row.name;
    EXPECT_TRUE(!row.ends_function || role_of(row.body) == Structural::kReturn) << row.name;
    EXPECT_EQ(row.sharded.expand == nullptr, row.sharded.free_dim == nullptr) << row.name;
  }
}

TEST(OpTable, propagation_facts_are_those_of_shardy) {
  EXPECT_EQ(find_op("stablehlo.broadcast_in_dim")->propagation.flow, Flow::kBroadcast);
  EXPECT_EQ(find_op("stablehlo.transpose")->propagation.flow, Flow::kPassThrough);
  EXPECT_EQ(find_op("stablehlo.dynamic_slice")->propagation.flow, Flow::kPassThroughForward);
  EXPECT_EQ(find_op("stablehlo.dot_general")->propagation.flow, Flow::kOther);
  EXPECT_TRUE(find_op("stablehlo.slice")->propagation.keeps_constants);
  EXPECT_FALSE(find_op("stablehlo.transpose")->propagation.keeps_constants);
  EXPECT_EQ(find_op("stablehlo.bitcast_convert")->propagation.elementwise, Elementwise::kSameShapes);
  EXPECT_EQ(find_op("chlo.broadcast_add")->propagation.elementwise, Elementwise::kAlways);
  EXPECT_EQ(find_op("chlo.top_k")->propagation.elementwise, Elementwise::kByBody);
  EXPECT_EQ(find_custom_call("MoveToHost")->flow, Flow::kPassThrough);
}

}  // namespace
}  // namespace meshd::ops
