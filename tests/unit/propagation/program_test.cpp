#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/program/parse/parse.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/print.h"
#include "service/program/transform/inline_calls.h"
#include "service/propagation/export/report.h"
#include "service/propagation/propagate.h"

namespace meshd::propagation {
namespace {

ir::Module parsed(const std::string& body, const std::string& more = "") {
  return program::inline_calls(
      *program::parse_stablehlo("module {\n  sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\n" + body + more + "}\n"));
}

std::string text(const MaybeSharding& sharding) { return sharding ? sharding::to_sdy(*sharding) : "none"; }

std::vector<const ir::Op*> ops_named(const Propagated& out, const std::string& name) {
  std::vector<const ir::Op*> found;
  for (const ir::Op& op : out.module->main().body.ops) {
    if (op.name == name) found.push_back(&op);
  }
  return found;
}

std::string sharding_of(const Propagated& out, const std::string& op_name, size_t which = 0) {
  return text(out.of(ops_named(out, op_name).at(which)->results.at(0)));
}

const char* const kTwoTanh = R"(
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    %1 = stablehlo.negate %0 : tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
)";

TEST(Propagate, an_annotated_argument_reaches_every_value_and_the_result) {
  const Propagated out = propagate(parsed(kTwoTanh));
  EXPECT_EQ(sharding_of(out, "stablehlo.tanh"), R"(@mesh, [{"x"}, {}])");
  EXPECT_EQ(sharding_of(out, "stablehlo.negate"), R"(@mesh, [{"x"}, {}])");
  EXPECT_EQ(text(out.results.at(0)), R"(@mesh, [{"x"}, {}])");
}

TEST(Propagate, origins_say_who_decided) {
  const Propagated out = propagate(parsed(kTwoTanh));
  const ir::Function& main = out.module->main();
  EXPECT_EQ(out.origins.at(static_cast<size_t>(main.body.arguments[0])).kind, OriginKind::kArgument);
  const Origin tanh = out.origins.at(static_cast<size_t>(main.body.ops[0].results[0]));
  EXPECT_EQ(tanh.kind, OriginKind::kRule);
  EXPECT_EQ(tanh.line, 5);
}

TEST(Propagate, seeds_take_the_place_of_annotations) {
  const ir::Module module = parsed(kTwoTanh);
  sharding::TensorSharding seed = sharding::fully_replicated("mesh", module.meshes[0].mesh, 2);
  seed.dims[1].axes = {{1}};
  Options options;
  options.argument_seeds = {seed};
  EXPECT_EQ(sharding_of(propagate(module, options), "stablehlo.negate"), R"(@mesh, [{}, {"y"}])");
  options.argument_seeds.clear();
  options.result_seeds = {seed};
  EXPECT_EQ(sharding_of(propagate(module, options), "stablehlo.tanh"), R"(@mesh, [{"x"}, {"y"}])");
}

TEST(Propagate, a_seed_brings_its_own_mesh_to_a_program_without_one) {
  const ir::Module module = program::inline_calls(*program::parse_stablehlo(R"(module {
  func.func @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
)"));
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"d", 8}}, {}, {}});
  sharding::TensorSharding seed = sharding::fully_replicated("", mesh, 2);
  seed.dims[0].axes = {{0}};
  Options options;
  options.argument_seeds = {seed};
  const Propagated out = propagate(module, options);
  EXPECT_EQ(text(out.results.at(0)), R"(@mesh, [{"d"}, {}])");
  EXPECT_NE(out.module->find_mesh("mesh"), nullptr);
}

const char* const kSharedConstant = R"(
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"SECOND"}, {}]>}) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<8x16xf32>
    %0 = stablehlo.add %arg0, %cst : tensor<8x16xf32>
    %1 = stablehlo.add %arg1, %cst : tensor<8x16xf32>
    return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
  }
)";

std::string with_second(std::string text, const std::string& axis) {
  return text.replace(text.find("SECOND"), 6, axis);
}

TEST(Propagate, a_constant_stands_once_for_each_sharding_that_its_uses_want) {
  const Propagated apart = propagate(parsed(with_second(kSharedConstant, "y")));
  EXPECT_EQ(ops_named(apart, "stablehlo.constant").size(), 2U);
  EXPECT_EQ(sharding_of(apart, "stablehlo.constant", 0), R"(@mesh, [{"x"}, {}])");
  EXPECT_EQ(sharding_of(apart, "stablehlo.constant", 1), R"(@mesh, [{"y"}, {}])");
  EXPECT_EQ(ops_named(propagate(parsed(with_second(kSharedConstant, "x"))), "stablehlo.constant").size(), 1U);
}

TEST(Propagate, a_copied_constant_is_reported_on_its_line_with_who_takes_it) {
  const std::vector<FunctionReport> reports = report(propagate(parsed(with_second(kSharedConstant, "y"))));
  const ValueReport& constant = reports.at(0).values.at(0);
  EXPECT_EQ(constant.line, 5);
  ASSERT_EQ(constant.copies.size(), 2U);
  EXPECT_EQ(constant.copies[0].users, (std::vector<std::pair<int32_t, int>>{{6, 1}}));
  EXPECT_EQ(constant.copies[1].users, (std::vector<std::pair<int32_t, int>>{{7, 1}}));
}

// `length` sums of constants, of which `reads` are read, the last one among them.
ir::Module sums_of_constants(int length, int reads) {
  const std::string type = "tensor<8x16xf32>";
  std::string text = "func.func @main(%x0: " + type + R"( {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> )" +
                     type + " {\n%c0 = stablehlo.constant dense<1.0> : " + type + "\n";
  int last = 0;
  for (int i = 1; i <= length; ++i) {
    text += fmt::format("%c{} = stablehlo.add %c{}, %c0 : {}\n", i, i - 1, type);
    if (i <= length - reads) continue;
    text += fmt::format("%x{} = stablehlo.multiply %x{}, %c{} : {}\n", last + 1, last, i, type);
    ++last;
  }
  return parsed(text + fmt::format("return %x{} : {}\n}}\n", last, type));
}

// Each of the reads has a copy of all sums before it in Shardy: more than fits in memory of a short text.
TEST(Propagate, copies_of_constants_are_no_more_than_some_times_the_program) {
  constexpr int kLength = 4'000;
  const Propagated out = propagate(sums_of_constants(kLength, kLength));
  EXPECT_EQ(sharding_of(out, "stablehlo.multiply", kLength - 1), R"(@mesh, [{"x"}, {}])");
}

TEST(Propagate, a_long_computation_of_constants_is_not_copied) {
  constexpr int kLength = 100'000;
  const Propagated out = propagate(sums_of_constants(kLength, 2));
  EXPECT_EQ(ops_named(out, "stablehlo.add").size(), static_cast<size_t>(kLength));
}

TEST(Propagate, ops_that_nobody_uses_are_dropped) {
  const Propagated out = propagate(parsed(R"(
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    %1 = stablehlo.negate %0 : tensor<8x16xf32>
    return %arg0 : tensor<8x16xf32>
  }
)"));
  EXPECT_EQ(out.module->main().body.ops.size(), 1U);
}

TEST(Propagate, a_program_without_shardings_stays_as_it_is) {
  const ir::Module module = parsed(R"(
  func.func @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
)");
  const Propagated out = propagate(module);
  EXPECT_EQ(program::print_generic(*out.module), program::print_generic(module));
  EXPECT_EQ(out.values.size(), module.main().values.size());
  EXPECT_EQ(text(out.results.at(0)), "none");
}

TEST(Propagate, too_many_priorities_are_refused) {
  std::string body = "  func.func @main(";
  for (int i = 0; i < 70; ++i) {
    body += (i ? ", %arg" : "%arg") + std::to_string(i) +
            ": tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}p" + std::to_string(i) + "]>}";
  }
  const ir::Module module = parsed(body + ") -> tensor<8xf32> {\n    return %arg0 : tensor<8xf32>\n  }\n");
  EXPECT_THROW(propagate(module), core::Error);
}

TEST(Propagate, a_closed_constraint_decides_the_op_before_it) {
  const Propagated out = propagate(parsed(R"(
  func.func @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
)"));
  EXPECT_EQ(sharding_of(out, "stablehlo.tanh"), R"(@mesh, [{"x"}, {}])");
  EXPECT_EQ(out.origins.at(static_cast<size_t>(ops_named(out, "stablehlo.tanh")[0]->results[0])).kind,
            OriginKind::kConstraint);
}

TEST(Propagate, a_function_whose_annotations_differ_from_the_callers_gets_a_reshard_at_its_edge) {
  const Propagated out = propagate(parsed(R"(
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
    %0 = call @f(%arg0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
)",
                                          R"(
  func.func private @f(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
)"));
  ASSERT_EQ(ops_named(out, "sdy.reshard").size(), 1U);
  EXPECT_EQ(sharding_of(out, "sdy.reshard"), R"(@mesh, [{}, {"y"}])");
  EXPECT_EQ(sharding_of(out, "stablehlo.tanh"), R"(@mesh, [{}, {"y"}])");
  const std::vector<FunctionReport> reports = report(out);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1].name, "f");
  EXPECT_EQ(reports[1].calls, (std::vector<std::vector<int32_t>>{{5}}));
  EXPECT_EQ(text(reports[1].arguments.at(0)), R"(@mesh, [{}, {"y"}])");
}

TEST(Propagate, a_manual_computation_has_its_shardings_filled_up) {
  const Propagated out = propagate(parsed(R"(
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) -> tensor<8x16xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"x", ?}, {?}]>] manual_axes={"x"} (%arg1: tensor<4x16xf32>) {
      %1 = stablehlo.tanh %arg1 : tensor<4x16xf32>
      sdy.return %1 : tensor<4x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
)"));
  const ir::Op& manual = *ops_named(out, "sdy.manual_computation").at(0);
  EXPECT_EQ(text(ir::find(manual.attributes, "in_shardings")->as<ir::ShardingAttr>()->shardings[0]),
            R"(@mesh, [{"x"}, {"y"}])");
  EXPECT_EQ(text(ir::find(manual.attributes, "out_shardings")->as<ir::ShardingAttr>()->shardings[0]),
            R"(@mesh, [{"x"}, {"y"}])");
  EXPECT_EQ(text(out.of(manual.regions[0].ops[0].results[0])), R"(@mesh, [{}, {"y"}])");
  EXPECT_EQ(text(out.results.at(0)), R"(@mesh, [{"x"}, {"y"}])");
}

TEST(Propagate, a_group_on_a_manual_computations_result_ends) {  // Shardy itself never ends here
  const Propagated out = propagate(parsed(R"(
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}, %arg1: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"x", ?}, {?}]>] manual_axes={"x"} (%arg2: tensor<4x16xf32>) {
      %2 = stablehlo.tanh %arg2 : tensor<4x16xf32>
      sdy.return %2 : tensor<4x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.tanh %arg1 : tensor<8x16xf32>
    sdy.sharding_group %0 group_id=0 : tensor<8x16xf32>
    sdy.sharding_group %1 group_id=0 : tensor<8x16xf32>
    return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
  }
)"));
  EXPECT_EQ(sharding_of(out, "stablehlo.tanh"), R"(@mesh, [{"x"}, {"y"}])");
}

TEST(Propagate, priorities_on_an_op_are_heard) {  // Shardy itself crashes here
  const Propagated out = propagate(parsed(R"(
  func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x"}]>}) -> tensor<8x16xf32> {
    %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}p1, {?}]>]>} : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
)"));
  EXPECT_EQ(sharding_of(out, "stablehlo.tanh"), R"(@mesh, [{"x"}, {}])");
}

TEST(Propagate, a_group_across_the_edge_of_a_manual_computation_is_refused) {
  const ir::Module module = program::parse_unverified(R"(module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
    sdy.sharding_group %arg0 group_id=7 : tensor<8x16xf32>
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%arg1: tensor<8x16xf32>) {
      sdy.sharding_group %arg1 group_id=7 : tensor<8x16xf32>
      sdy.return %arg1 : tensor<8x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
)");
  try {
    propagate(module);
    FAIL() << "accepted";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code().word(), "invalid_program");
    EXPECT_NE(error.detail().find("group 7"), std::string::npos);
  }
}

TEST(Propagate, what_comes_out_is_a_program_that_parses_again) {
  for (const char* axis : {"x", "y"}) {
    const Propagated out = propagate(parsed(with_second(kSharedConstant, axis)));
    ir::Module again = *out.module;
    again.inlined_calls.clear();
    const std::string printed = program::print_generic(again);
    EXPECT_EQ(program::print_generic(*program::parse_stablehlo(printed)), printed);
  }
}

}  // namespace
}  // namespace meshd::propagation
