// Shardy's own collectives in a text: read, held to their axes, printed again, run as what they are, a new sharding.
#include <gtest/gtest.h>

#include "service/core/error.h"
#include "service/program/print.h"

#include "tests/unit/compile/explain_support.h"

namespace meshd::compile {
namespace {

std::string with(const std::string& op) {
  return kMesh + R"(sdy.mesh @other = <["a"=8]>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>}) -> tensor<8x8xf32> {
  %0 = )" +
         op + R"( : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
})";
}

TEST(SdyCollectives, those_that_fit_are_read_and_printed_and_read_again) {
  for (const char* op : {
           R"(sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]>)",
           R"(sdy.all_slice [{"y":(1)2}, {}] %arg0 out_sharding=<@mesh, [{"x", "y":(1)2}, {}]>)",
           R"(sdy.all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"x"}]>)",
           R"(sdy.all_reduce {"x"} %arg1 out_sharding=<@mesh, [{}, {}]>)",
           R"(sdy.reduce_scatter [{"x"}, {}] %arg1 out_sharding=<@mesh, [{"x"}, {}]>)",
           R"(sdy.sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {}], unreduced={"x"}>)",
           R"(sdy.replicated_to_unreduced {"y"} %arg0 out_sharding=<@mesh, [{"x"}, {}], unreduced={"y"}>)",
           R"(sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y":(1)2}, {}]>)",
           R"(sdy.data_flow_edge %arg0 sharding=<@mesh, [{"x"}, {?}]>)",
       }) {
    try {
      const std::string once = program::print_generic(*program::parse_stablehlo(with(op)));
      EXPECT_EQ(program::print_generic(*program::parse_stablehlo(once)), once) << op;
      const Explanation told = explained(with(op));
      EXPECT_FALSE(told.unplanned.has_value()) << op << told.unplanned->detail();
    } catch (const core::Error& error) {
      ADD_FAILURE() << op << ": " << error.detail();
    }
  }
}

TEST(SdyCollectives, those_that_do_not_fit_are_refused_with_both_sides) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"(sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{"y"}, {}]>)",
       R"(sharded by {"x"} in the operand and by {"y"})"},
      {R"(sdy.all_gather [{"y"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]>)", R"({"y"} does not lead)"},
      {R"(sdy.all_gather [{"x"}] %arg0 out_sharding=<@mesh, [{}, {}]>)", "1 lists of axes for 2 dimensions"},
      {R"(sdy.all_gather [{"z"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]>)", "unknown axis \"z\""},
      {R"(sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@other, [{}, {}]>)", "the operand is over"},
      {R"(sdy.all_slice [{"y"}, {}] %arg0 out_sharding=<@mesh, [{"x"}, {}]>)", R"({"y"} does not lead)"},
      {R"(sdy.all_to_all [{"x"}: 0->0] %arg0 out_sharding=<@mesh, [{}, {"x"}]>)", "dimension 0 occurs twice"},
      {R"(sdy.all_to_all [{"x"}: 0->2] %arg0 out_sharding=<@mesh, [{}, {"x"}]>)", "dimension 2 is out of range [0, 2)"},
      {R"(sdy.all_to_all [{"y"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"x"}]>)", R"({"y"} does not lead)"},
      {R"(sdy.all_reduce {"x"} %arg1 out_sharding=<@mesh, [{"x"}, {}]>)", R"(by {"x"} in the result)"},
      {R"(sdy.all_reduce {"x"} %arg0 out_sharding=<@mesh, [{"x"}, {}]>)", R"(reduction axis {"x"} shards dimension 0)"},
      {R"(sdy.reduce_scatter [{"x"}, {}] %arg1 out_sharding=<@mesh, [{}, {"x"}]>)", R"({"x"} does not lead)"},
      {R"(sdy.sharded_to_unreduced [{"y"}, {}] %arg0 out_sharding=<@mesh, [{}, {}], unreduced={"y"}>)",
       R"({"y"} does not lead)"},
      {R"(sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y"}, {}]>)", "sharded 2 ways in the operand and 4 ways"},
      {R"(sdy.collective_permute %arg0 out_sharding=<@other, [{"a":(1)2}, {}]>)", "a permutation needs the same axes"},
  };
  for (const auto& [op, words] : wrong) {
    try {
      static_cast<void>(program::parse_stablehlo(with(op)));
      ADD_FAILURE() << op << " is taken";
    } catch (const core::Error& error) {
      EXPECT_NE(error.detail().find(words), std::string::npos) << op << ": " << error.detail();
    }
  }
}

}  // namespace
}  // namespace meshd::compile
