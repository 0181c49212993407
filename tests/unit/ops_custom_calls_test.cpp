// The table of custom-call targets, and how callbacks are read.
#include <gtest/gtest.h>

#include <string>

#include "service/ops/custom_calls.h"
#include "service/ops/shape_assertion.h"
#include "tests/unit/ops_support.h"

namespace meshd::ops {
namespace {

using test::error_of;
using test::Instance;
using test::types;

const OpDef& row() { return *find_op("stablehlo.custom_call"); }

ir::AttributeList target(std::string name) {
  return {{"call_target_name", test::attribute(ir::StringAttr{std::move(name)})}};
}

ir::Attribute index_of(int64_t index) {
  return test::attribute(ir::DictAttr{"", {{"index", test::attribute(ir::IntegerAttr{index, "ui64"})}}});
}

TEST(CustomCalls, every_target_is_found) {
  for (const CustomCallDef& def : all_custom_calls()) {
    EXPECT_EQ(find_custom_call(def.target), &def) << def.target;
    EXPECT_FALSE(def.summary.empty()) << def.target;
  }
  EXPECT_EQ(find_custom_call("somebody.elses"), nullptr);
  EXPECT_EQ(find_custom_call(""), nullptr);
}

TEST(CustomCalls, unknown_targets_have_no_rule_and_no_body) {
  const Instance call{
      .operands = types({"8x16xf32"}), .results = types({"8x16xf32"}), .attributes = target("somebody.elses")};
  EXPECT_FALSE(rule_of(row(), call.view()).has_value());
  EXPECT_TRUE(std::holds_alternative<Unsupported>(body_of(row(), call.view())));
}

std::string rule_text(std::string name, std::vector<ir::Type> operands, std::vector<ir::Type> results) {
  const Instance call{
      .operands = std::move(operands), .results = std::move(results), .attributes = target(std::move(name))};
  const auto rule = rule_of(row(), call.view());
  return rule ? sharding::to_sdy(*rule) : "none";
}

TEST(CustomCalls, rules_are_shardys) {
  const auto matrix = types({"8x16xf32"});
  for (const char* name :
       {"mhlo.erf", "MoveToHost", "MoveToDevice", "LayoutConstraint", "InspectSharding", "annotate_device_placement"}) {
    EXPECT_EQ(rule_text(name, matrix, matrix), "([i, j])->([i, j]) {i=8, j=16}") << name;
  }
  EXPECT_EQ(rule_text("Sharding", matrix, matrix), "none");
  EXPECT_EQ(rule_text("xla_ffi_python_cpu_callback", matrix, matrix), "none");
  EXPECT_EQ(rule_text("mhlo.topk", types({"8x4x16xf32"}), types({"8x4x4xf32", "8x4x4xi32"})),
            "([i, j, k])->([i, j, k], [i, j, k]) {i=8, j=4, k=16} need_replication={k} blocked_propagation={k}");
  EXPECT_EQ(rule_text("Eigh", types({"4x16x16xf32"}), types({"4x16x16xf32", "4x16xf32"})),
            "([i, j, k])->([i, j, k], [i, k]) {i=4, j=16, k=16}");
  EXPECT_EQ(rule_text("Qr", types({"4x16x8xf32"}), types({"4x16x8xf32", "4x8xf32"})),
            "([i, j, k])->([i, j, k], [i, l]) {i=4, j=16, k=8, l=8} need_replication={j, k, l}");
  EXPECT_EQ(
      rule_text("ProductOfElementaryHouseholderReflectors", types({"4x16x8xf32", "4x8xf32"}), types({"4x16x8xf32"})),
      "([i, j, k], [i, l])->([i, j, k]) {i=4, j=16, k=8, l=8} need_replication={j, k, l}");
}

TEST(ShapeAssertion, values_stand_where_the_message_says) {
  const std::vector<int64_t> values = {3, 40};
  EXPECT_EQ(with_values("'b' = {0}, not {1}; {2} {x} {", values), "'b' = 3, not 40; {2} {x} {");
  EXPECT_EQ(with_values("", values), "");
}

TEST(ShapeAssertion, throws_only_where_the_condition_fails) {
  Instance call{.operands = types({"i1", "i32"}), .results = {}, .attributes = target("shape_assertion")};
  call.attributes.emplace_back("error_message", test::attribute(ir::StringAttr{"expected >= 1, got {0}"}));
  const PreparedKernel kernel = std::get<LocalKernel>(body_of(row(), call.view())).prepare(call.view());
  const auto run = [&](bool holds) {
    const int32_t value = -2;
    const std::byte* operands[] = {reinterpret_cast<const std::byte*>(&holds),
                                   reinterpret_cast<const std::byte*>(&value)};
    return error_of([&] { kernel.run({.operands = operands}); });
  };
  EXPECT_EQ(run(true), "");
  EXPECT_EQ(run(false), "invalid_argument: expected >= 1, got -2");
}

TEST(Effects, callback_of_todays_texts) {
  Instance call{.operands = types({"token", "3xi32", "f32"}), .results = types({"token", "f32"})};
  call.attributes = target("xla_ffi_python_cpu_callback");
  call.attributes.emplace_back("has_side_effect", test::attribute(ir::IntegerAttr{1, "i1"}));
  call.attributes.emplace_back("backend_config", test::attribute(ir::StringAttr{""}));
  call.attributes.emplace_back("mhlo.backend_config", index_of(3));
  const auto one = std::make_shared<const mesh::Mesh>(mesh::Mesh{{}, {2}, {}});
  call.attributes.emplace_back(
      "sdy.sharding", test::attribute(ir::ShardingAttr{{sharding::fully_replicated("maximal_mesh_2", one, 0)}, true}));
  const EffectInfo info = effect_of(call.view());
  EXPECT_EQ(info.index, 3);
  EXPECT_TRUE(info.ordered);
  EXPECT_TRUE(info.has_side_effect);
  EXPECT_FALSE(info.per_device);
  EXPECT_TRUE(info.maximal);
  EXPECT_EQ(info.device, 2);
  EXPECT_EQ(info.value_operands, (std::vector<int>{1, 2}));
  EXPECT_EQ(info.value_results, (std::vector<int>{1}));
}

TEST(Effects, partitioned_target_is_per_device_though_maximal) {
  Instance call{
      .operands = types({"3xi32"}), .results = {}, .attributes = target("xla_ffi_partitioned_python_cpu_callback")};
  call.attributes.emplace_back("mhlo.backend_config", index_of(0));
  call.attributes.emplace_back("mhlo.sharding", test::attribute(ir::StringAttr{"{maximal device=5}"}));
  const EffectInfo info = effect_of(call.view());
  EXPECT_TRUE(info.per_device);
  EXPECT_FALSE(info.ordered);
  EXPECT_FALSE(info.has_side_effect);
  EXPECT_EQ(info.device, 5);
}

TEST(Effects, descriptor_of_older_texts_is_no_value) {
  Instance call{.operands = types({"i64", "3xi32"}),
                .results = types({"3xi32"}),
                .attributes = target("xla_python_cpu_callback")};
  call.attributes.emplace_back("backend_config", test::attribute(ir::StringAttr{"94325"}));
  const EffectInfo info = effect_of(call.view());
  EXPECT_EQ(info.index, 94325);
  EXPECT_EQ(info.value_operands, (std::vector<int>{1}));
}

TEST(Effects, what_is_no_callback_is_refused) {
  Instance call{.operands = {}, .results = {}, .attributes = target("Sharding")};
  EXPECT_NE(error_of([&] { effect_of(call.view()); }).find("@Sharding is not a callback"), std::string::npos);
  call.attributes = target("xla_ffi_python_cpu_callback");
  EXPECT_NE(error_of([&] { effect_of(call.view()); }).find("says no index"), std::string::npos);
}

}  // namespace
}  // namespace meshd::ops
