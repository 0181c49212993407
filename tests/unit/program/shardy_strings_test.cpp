// Shardy's annotations in strings, as XLA writes a module without the dialect, mean what Shardy's own mean.
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

constexpr const char* kStrings = R"(
module @m attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22x\22=2, \22y\22=4]>}"}} {
  func.func public @main(%arg0: tensor<8x8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\22x\22}, {?}]>"}, mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}) -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) {
    %0 = stablehlo.add %arg0, %arg0 {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}, {}]>]>"}, mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : tensor<8x8xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}, {}]>]>"}, mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.custom_call @xla.sdy.ShardingGroup(%1) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "7 : i64"}} : (tensor<8x8xf32>) -> ()
    %b = stablehlo.custom_call @xla.sdy.PropagationBarrier(%1) {mhlo.frontend_attributes = {xla.sdy.allowed_direction = "1 : i32"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%b) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}, {\22y\22}]>]>", xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22, \22y\22}>"}} : (tensor<8x8xf32>) -> tensor<4x2xf32>
    %3 = call @xla.sdy.manual_computation_body(%2) {mhlo.frontend_attributes = {inlineable = "false"}} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %4 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%3) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22, \22y\22}>", xla.sdy.out_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}, {\22y\22}]>]>"}} : (tensor<4x2xf32>) -> tensor<8x8xf32>
    %5 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%4) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}, {\22y\22}]>]>"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %5 : tensor<8x8xf32>
  }
  func.func @xla.sdy.manual_computation_body(%arg0: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
})";

constexpr const char* kShardy = R"(
module @m {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
    %0 = stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    sdy.sharding_group %1 group_id=7 : tensor<8x8xf32>
    %b = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8x8xf32>
    %2 = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<4x2xf32>) {
      %3 = stablehlo.negate %arg1 : tensor<4x2xf32>
      sdy.return %3 : tensor<4x2xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
})";

std::string sorted(std::string text) {
  // Attributes of the manual computation are in another order.
  const std::string two = "manual_axes = #sdy<manual_axes{\"x\", \"y\"}>";
  const size_t at = text.find(two);
  return at == std::string::npos ? text : text.erase(at, two.size());
}

TEST(ShardyStrings, are_shardys_annotations) {
  EXPECT_EQ(sorted(print_generic(*parse_stablehlo(kStrings))), sorted(print_generic(*parse_stablehlo(kShardy))));
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string refusal(const std::string& text) {
  try {
    parse_stablehlo(text);
  } catch (const core::Error& error) {
    return error.detail();
  }
  return "was taken";
}

TEST(ShardyStrings, that_are_wrong_are_refused_with_their_line) {
  EXPECT_EQ(
      refusal(replaced(kStrings, "@mesh, [{\\22x\\22}, {}]>]>\"}", "@other, [{\\22x\\22}, {}]>]>\"}")).substr(0, 17),
      "line 4, column 5:");
  EXPECT_NE(refusal(replaced(kStrings, "call @xla.sdy.manual_computation_body(%2)",
                             "call @xla.sdy.manual_computation_body_1(%2)"))
                .find("the body of a manual computation is missing"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(kStrings, "@xla.sdy.LocalToGlobalShape", "@xla.sdy.Unknown"))
                .find("@xla.sdy.Unknown is not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace meshd::program
