// The table of custom-call targets, and how callbacks are read.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/structure/shape_assertion.h"
#include "tests/unit/ops/support.h"

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
    const bool is_computed = std::holds_alternative<ScalarMath>(def.body) ||
                             std::holds_alternative<LocalKernel>(def.body) || def.kind == CustomCallKind::kBounds;
    EXPECT_TRUE(!is_computed || def.check != nullptr) << def.target << ": kernels rely on the types that are checked";
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

std::string call_error(std::string name, std::vector<ir::Type> operands, std::vector<ir::Type> results) {
  const Instance call{
      .operands = std::move(operands), .results = std::move(results), .attributes = target(std::move(name))};
  return error_of([&] { row().infer(call.view()); });
}

/// Kernels write as many elements as the results have, of their type.
TEST(CustomCalls, results_that_do_not_follow_from_the_operands_are_refused) {
  struct Call {
    const char* name;
    std::vector<const char*> operands, results;
    bool is_taken = false;
  };
  std::vector<Call> calls = {
      {"InspectSharding", {"4xf32"}, {}, true},
      {"X64SplitLow", {"4xui64"}, {"4xui32"}, true},
      {"X64SplitLow", {"4xui64"}, {"300xui32"}},
      {"X64SplitHigh", {"4xf32"}, {"4xui32"}},
      {"X64Combine", {"4xui32", "4xui32"}, {"4xui64"}, true},
      {"X64Combine", {"4xui32"}, {"4xui64"}},
      {"X64Combine", {"4xui32", "3xui32"}, {"4xui64"}},
      {"X64Combine", {"4xui32", "4xui32"}, {"4xui32"}},
      {"meshd.differentiated_as", {"4xf32", "4xf32"}, {"4xf32"}, true},
      {"meshd.differentiated_as", {"4xf32", "4xf32", "4xf32"}, {"4xf32"}, true},
      {"meshd.differentiated_as", {"4xf32"}, {"4xf32"}},
      {"meshd.differentiated_as", {"4xf32", "4xf32"}, {"5xf32"}},
      {"meshd.differentiated_as", {"4xf32", "4xf64"}, {"4xf32"}},
      {"meshd.differentiated_as", {"4xf32", "4xf32", "4xf32", "4xf32"}, {"4xf32"}},
      {"mhlo.topk", {"2x4xf32"}, {"2x2xf32", "2x2xi32"}, true},
      {"mhlo.topk", {"?x4xf32"}, {"?x2xf32", "?x2xi32"}, true},
      {"mhlo.topk", {"2x4xf32"}, {"1x2xf32", "1x2xi32"}},
      {"mhlo.topk", {"2x4xf32"}, {"2x5xf32", "2x5xi32"}},
      {"mhlo.topk", {"2x4xf64"}, {"2x2xf32", "2x2xi32"}},
      {"mhlo.topk", {"2x4xf32"}, {"2x2xf32", "2x3xi32"}},
      {"mhlo.topk", {"f32"}, {"f32", "i32"}},
      {"mhlo.topk", {"2x4xf32"}, {"2x2xf32"}},
      {"ApproxTopK", {"8x4xf32", "8x4xi32", "f32", "i32"}, {"8x2xf32", "8x2xi32"}, true},
      {"ApproxTopK", {"8x4xf32", "8x3xi32", "f32", "i32"}, {"8x2xf32", "8x2xi32"}},
      {"ApproxTopK", {"8x4xf32", "8x4xi32", "f32", "i64"}, {"8x2xf32", "8x2xi32"}},
      {"ApproxTopK", {"8x4xf32", "8x4xi32", "f32", "i32"}, {"8x2xf32", "8x3xi32"}},
      {"ApproxTopK", {"8x4xf32", "8x4xi32", "f32", "i32"}, {"7x2xf32", "7x2xi32"}},
      {"PartialReduce", {"8x4xf32", "8x4xi32", "f32", "i32"}, {"8x5xf32", "8x5xi32"}},
      {"PartialReduce", {"8x4xf32", "8x4xi32", "f32", "i32"}, {"8x2xf32"}},
      {"PartialReduce", {"f32", "f32"}, {"f32"}},
      {"PartialReduce", {}, {}},
      {"PadToStatic", {"4xf32"}, {"4xf32", "i32"}, true},
      {"PadToStatic", {"?xf32"}, {"4xf32", "i32"}, true},
      {"PadToStatic", {}, {"4xf32", "i32"}},
      {"PadToStatic", {"4xf32"}, {"4xf32"}},
      {"PadToStatic", {"4xf32"}, {"4xf32", "f32"}},
      {"SliceToDynamic", {"4xf32", "i32"}, {"?xf32"}, true},
      {"SliceToDynamic", {}, {"4xf32"}},
      {"SliceToDynamic", {"4xf32", "2xi32"}, {"?xf32"}},
      {"SliceToDynamic", {"4xf32", "f32"}, {"?xf32"}},
      {"SliceToDynamic", {"4xf32", "i32", "i32"}, {"?xf32"}},
      {"SliceToDynamic", {"4xf32", "i32"}, {"?xf64"}},
      {"shape_assertion", {"i1", "i32"}, {}, true},
      {"shape_assertion", {"i1"}, {"i32"}},
      {"shape_assertion", {"i32"}, {}},
  };
  for (const char* name : {"Sharding", "MoveToHost", "annotate_device_placement", "xla_mark_tensor", "mhlo.erf"}) {
    calls.push_back({name, {"4xf32"}, {"4xf32"}, true});
    calls.push_back({name, {"?xf32"}, {"4xf32"}, true});
    calls.push_back({name, {"4xf32"}, {"300xf32"}});
    calls.push_back({name, {"4xf32"}, {"4xf64"}});
    calls.push_back({name, {"4xf32"}, {"4xf32", "4xf32"}});
    calls.push_back({name, {"4xf32", "4xf32"}, {"4xf32"}});
    calls.push_back({name, {}, {"4xf32"}});
  }
  for (const Call& call : calls) {
    const auto of = [](const std::vector<const char*>& texts) {
      std::vector<ir::Type> out;
      for (const char* text : texts) out.push_back(types({text})[0]);
      return out;
    };
    const std::string error = call_error(call.name, of(call.operands), of(call.results));
    EXPECT_EQ(error.empty(), call.is_taken)
        << types_text(of(call.operands)) << " -> " << types_text(of(call.results)) << ": " << error;
    EXPECT_TRUE(error.empty() || error.find(std::string("custom_call @") + call.name) != std::string::npos) << error;
  }
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

/// A layout: minor dimensions first.
ir::Attribute layouts(const std::vector<std::vector<int64_t>>& lists) {
  ir::ArrayAttr out;
  for (const auto& list : lists) {
    auto bytes = std::make_shared<std::vector<std::byte>>(list.size() * sizeof(int64_t));
    if (!list.empty()) std::memcpy(bytes->data(), list.data(), bytes->size());
    out.values.push_back(test::attribute(
        ir::DenseAttr{{tensor::DType::kInt64, {static_cast<int64_t>(list.size())}}, false, std::move(bytes), true}));
  }
  return test::attribute(std::move(out));
}

/// A call of LAPACK as JAX prints it.
struct LapackCall {
  std::string name = "lapack_sgetrf_ffi";
  std::vector<ir::Type> operands = types({"2x5x3xf32"});
  std::vector<ir::Type> results = types({"2x5x3xf32", "2x3xi32", "2xi32"});
  std::vector<std::pair<std::string, int64_t>> config = {};
  std::vector<std::vector<int64_t>> operand_layouts = {{1, 2, 0}};
  std::vector<std::vector<int64_t>> result_layouts = {{1, 2, 0}, {1, 0}, {0}};

  [[nodiscard]] Instance instance() const {
    ir::DictAttr entries;
    for (const auto& [key, value] : config) {
      entries.entries.emplace_back(key, test::attribute(ir::IntegerAttr{value, "ui8"}));
    }
    Instance call{.operands = operands, .results = results, .attributes = target(name)};
    call.attributes.emplace_back("mhlo.backend_config", test::attribute(entries));
    call.attributes.emplace_back("operand_layouts", layouts(operand_layouts));
    call.attributes.emplace_back("result_layouts", layouts(result_layouts));
    return call;
  }
  [[nodiscard]] std::string error() const {
    const Instance call = instance();
    return error_of([&] { row().infer(call.view()); });
  }
};

TEST(LapackCalls, all_sixty_are_there) {
  int count = 0;
  for (const CustomCallDef& def : all_custom_calls()) count += def.target.starts_with("lapack_") ? 1 : 0;
  EXPECT_EQ(count, 60);
  for (const char* name :
       {"lapack_spotrf_ffi", "lapack_zgetrf_ffi", "lapack_dorgqr_ffi", "lapack_cungqr_ffi", "lapack_cheevd_ffi",
        "lapack_zhetrd_ffi", "lapack_sormqr_ffi", "lapack_zunmqr_ffi", "tridiagonal_solve_perturbed_ffi"}) {
    EXPECT_NE(find_custom_call(name), nullptr) << name;
  }
  for (const char* name : {"lapack_corgqr_ffi", "lapack_ssysv_ffi", "lapack_sungqr_ffi"}) {
    EXPECT_EQ(find_custom_call(name), nullptr) << name;
  }
}

TEST(LapackCalls, what_jax_prints_is_taken) {
  EXPECT_EQ(LapackCall().error(), "");
  LapackCall dynamic;
  dynamic.operands = types({"?x5x3xf32"});
  EXPECT_EQ(dynamic.error(), "");
  LapackCall call = {.name = "lapack_cgesdd_ffi",
                     .operands = types({"4x6xcomplex<f32>"}),
                     .results = types({"4x6xcomplex<f32>", "4xf32", "4x4xcomplex<f32>", "6x6xcomplex<f32>", "i32"}),
                     .config = {{"mode", 'A'}},
                     .operand_layouts = {{0, 1}},
                     .result_layouts = {{0, 1}, {0}, {0, 1}, {0, 1}, {}}};
  EXPECT_EQ(call.error(), "");
  call.config = {{"mode", 'N'}};
  EXPECT_EQ(call.error(), "");
  call.config = {{"mode", 'S'}};
  EXPECT_EQ(
      call.error(),
      "invalid_program: line 7, column 3: custom_call @lapack_cgesdd_ffi: results must be (tensor<4x6xcomplex<f32>>, "
      "tensor<4xf32>, "
      "tensor<4x4xcomplex<f32>>, tensor<4x6xcomplex<f32>>, tensor<i32>), got (tensor<4x6xcomplex<f32>>, tensor<4xf32>, "
      "tensor<4x4xcomplex<f32>>, tensor<6x6xcomplex<f32>>, tensor<i32>)");
}

TEST(LapackCalls, others_are_refused_by_what_is_wrong) {
  LapackCall call;
  call.operands = types({"2x5x3xf64"});
  EXPECT_EQ(call.error(),
            "invalid_program: line 7, column 3: custom_call @lapack_sgetrf_ffi: operand 0 must be of f32, got "
            "tensor<2x5x3xf64>");
  call = {};
  call.operands.push_back(call.operands[0]);
  EXPECT_EQ(call.error(), "invalid_program: line 7, column 3: custom_call @lapack_sgetrf_ffi: has 1 operand, got 2");
  call = {};
  call.operand_layouts = {{2, 1, 0}};
  EXPECT_EQ(call.error(),
            "invalid_program: line 7, column 3: custom_call @lapack_sgetrf_ffi: operand_layouts must say that matrices "
            "are column-major, "
            "as JAX "
            "prints it: layout 0 must be [1, 2, 0]");
  call = {};
  call.result_layouts.pop_back();
  EXPECT_EQ(call.error(),
            "invalid_program: line 7, column 3: custom_call @lapack_sgetrf_ffi: result_layouts must say that matrices "
            "are column-major, as JAX "
            "prints it: a list of 3 layouts");
  const LapackCall square = {.name = "lapack_dpotrf_ffi",
                             .operands = types({"4x4xf64"}),
                             .results = types({"4x4xf64", "i32"}),
                             .config = {{"uplo", 'L'}},
                             .operand_layouts = {{0, 1}},
                             .result_layouts = {{0, 1}, {}}};
  EXPECT_EQ(square.error(), "");
  call = square;
  call.operands = types({"4x5xf64"});
  EXPECT_EQ(call.error(),
            "invalid_program: line 7, column 3: custom_call @lapack_dpotrf_ffi: the matrices of operand 0 must be "
            "square, got tensor<4x5xf64>");
  call = square;
  call.config = {{"uplo", 'X'}};
  EXPECT_EQ(call.error(),
            "invalid_program: line 7, column 3: custom_call @lapack_dpotrf_ffi: uplo of mhlo.backend_config must be "
            "one of 76 ('L'), 85 "
            "('U'), got 88");
  call.config = {};
  EXPECT_EQ(call.error(),
            "invalid_program: line 7, column 3: custom_call @lapack_dpotrf_ffi: mhlo.backend_config must have an "
            "integer uplo");
  call = {.name = "lapack_sgehrd_ffi",
          .operands = types({"4x4xf32"}),
          .results = types({"4x4xf32", "3xf32", "i32"}),
          .config = {{"low", 1}, {"high", 5}},
          .operand_layouts = {{0, 1}},
          .result_layouts = {{0, 1}, {0}, {}}};
  EXPECT_EQ(call.error(),
            "invalid_program: line 7, column 3: custom_call @lapack_sgehrd_ffi: low and high must be 1 <= low <= high "
            "<= 4, got 1 and 5");
  call = {.name = "lapack_sorgqr_ffi",
          .operands = types({"4x5xf32", "4xf32"}),
          .results = types({"4x5xf32"}),
          .operand_layouts = {{0, 1}, {0}},
          .result_layouts = {{0, 1}}};
  EXPECT_EQ(call.error(),
            "invalid_program: line 7, column 3: custom_call @lapack_sorgqr_ffi: must have at least as many rows as "
            "columns, and as many "
            "columns as "
            "reflectors, got tensor<4x5xf32> and tensor<4xf32>");
}

TEST(LapackCalls, aliases_must_be_possible) {
  Instance call = LapackCall().instance();
  const auto alias = [&](int64_t result, int64_t operand) {
    ir::DictAttr entries{"stablehlo.output_operand_alias",
                         {{"output_tuple_indices", test::attribute(ir::IntArrayAttr{{result}, "i64"})},
                          {"operand_index", test::attribute(ir::IntegerAttr{operand, "i64"})}}};
    Instance out = call;
    out.attributes.emplace_back("output_operand_aliases",
                                test::attribute(ir::ArrayAttr{{test::attribute(std::move(entries))}}));
    return error_of([&] { row().infer(out.view()); });
  };
  EXPECT_EQ(alias(0, 0), "");
  EXPECT_EQ(alias(1, 0),
            "invalid_program: line 7, column 3: custom_call @lapack_sgetrf_ffi: output_operand_aliases: result 1 "
            "cannot be operand 0: "
            "their types differ");
  EXPECT_EQ(alias(0, 1),
            "invalid_program: line 7, column 3: custom_call @lapack_sgetrf_ffi: output_operand_aliases: result 0 "
            "cannot be operand 1: "
            "there is no such pair");
}

TEST(LapackCalls, batch_dims_pass_through_and_matrices_are_whole) {
  EXPECT_EQ(rule_text("lapack_sgetrf_ffi", types({"8x5x3xf32"}), types({"8x5x3xf32", "8x3xi32", "8xi32"})),
            "([i, j, k])->([i, l, m], [i, n], [i]) {i=8, j=5, k=3, l=5, m=3, n=3} need_replication={j, k, l, m, n} "
            "blocked_propagation={j, k, l, m, n}");
}

}  // namespace
}  // namespace meshd::ops
