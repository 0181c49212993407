// Regions of scalar ops as tile programs: compiled, run over lanes, compared with what the ops mean.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/kernel_interface.h"
#include "tests/unit/ops/support.h"

namespace meshd::ops {
namespace {

using kernels::ScalarOp;
using test::append;
using test::error_of;
using test::type;
using test::types;

/// Runs a program of two inputs and one output over lanes.
template <typename In, typename Out>
std::vector<Out> run(const kernels::TileProgram& program, const std::vector<In>& a, const std::vector<In>& b) {
  kernels::TileScratch scratch(program, 64);
  std::memcpy(scratch.reg(0), a.data(), a.size() * sizeof(In));
  std::memcpy(scratch.reg(1), b.data(), b.size() * sizeof(In));
  kernels::run_tile(program, scratch, static_cast<int64_t>(a.size()));
  std::vector<Out> out(a.size());
  std::memcpy(out.data(), scratch.reg(program.outputs.at(0)), out.size() * sizeof(Out));
  return out;
}

TEST(ScalarRegion, reducer_of_one_op_is_recognised) {
  ir::Function function;
  const ir::Region region = test::binary_region(function, "stablehlo.maximum", type("f32"));
  const kernels::TileProgram program = compile_scalar_region(function, region);
  EXPECT_EQ(program.input_count, 2);
  EXPECT_EQ(kernels::as_single_binary(program), ScalarOp::kMaximum);
  EXPECT_EQ((run<float, float>(program, {1, 5}, {3, 2})), (std::vector<float>{3, 5}));
}

TEST(ScalarRegion, comparator_returns_booleans) {
  ir::Function function;
  ir::Region region;
  region.arguments = {function.add_value(type("f32"), "%a"), function.add_value(type("f32"), "%b")};
  const ir::AttributeList attributes = {
      {"comparison_direction", test::attribute(ir::EnumAttr{"comparison_direction", "LT"})},
      {"compare_type", test::attribute(ir::EnumAttr{"comparison_type", "TOTALORDER"})}};
  const auto less = append(function, region, "stablehlo.compare", region.arguments, types({"i1"}), attributes);
  append(function, region, "stablehlo.return", {less}, {});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ((run<float, uint8_t>(compile_scalar_region(function, region), {1, -0.0F, nan, 1}, {2, 0.0F, 1, nan})),
            (std::vector<uint8_t>{1, 1, 0, 1}));
}

TEST(ScalarRegion, constants_selects_and_constraints_are_part_of_it) {
  ir::Function function;
  ir::Region region;
  const ir::Type scalar = type("f32");
  region.arguments = {function.add_value(scalar, "%a"), function.add_value(scalar, "%b")};
  const auto limit = append(function, region, "stablehlo.constant", {}, {scalar},
                            {{"value", test::scalar(tensor::DType::kFloat32, 10.0F)}});
  const auto sum = append(function, region, "stablehlo.add", region.arguments, {scalar});
  const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 2}}, {}, {}});
  const auto same =
      append(function, region, "sdy.sharding_constraint", {sum}, {scalar},
             {{"sharding", test::attribute(ir::ShardingAttr{{sharding::fully_replicated("mesh", mesh, 0)}, false})}});
  const auto above = append(function, region, "stablehlo.compare", {same, limit}, types({"i1"}),
                            {{"comparison_direction", test::attribute(ir::EnumAttr{"comparison_direction", "GT"})}});
  const auto out = append(function, region, "stablehlo.select", {above, limit, same}, {scalar});
  append(function, region, "stablehlo.return", {out}, {});
  EXPECT_EQ((run<float, float>(compile_scalar_region(function, region), {1, 9}, {2, 4})), (std::vector<float>{3, 10}));
}

TEST(ScalarRegion, outputs_keep_the_order_of_the_return) {
  ir::Function function;
  ir::Region region;
  region.arguments = {function.add_value(type("i32"), "%a"), function.add_value(type("i32"), "%b")};
  append(function, region, "stablehlo.return", {region.arguments[1], region.arguments[0]}, {});
  EXPECT_EQ(compile_scalar_region(function, region).outputs, (std::vector<uint16_t>{1, 0}));
}

TEST(ScalarRegion, values_from_outside_are_refused_with_the_line) {
  ir::Function function;
  const ir::ValueId outside = function.add_value(type("f32"), "%7");
  ir::Region region;
  region.arguments = {function.add_value(type("f32"), "%a"), function.add_value(type("f32"), "%b")};
  append(function, region, "stablehlo.add", {region.arguments[0], outside}, types({"f32"}));
  EXPECT_EQ(error_of([&] { compile_scalar_region(function, region); }),
            "unsupported_op: line 10, column 5: 'stablehlo.add' uses %7 from outside of its region; only arguments and "
            "constants of the "
            "region are supported there");
}

TEST(ScalarRegion, other_ops_are_refused_by_name) {
  ir::Function function;
  ir::Region region;
  region.arguments = {function.add_value(type("f32"), "%a"), function.add_value(type("f32"), "%b")};
  append(function, region, "stablehlo.all_reduce", {region.arguments[0]}, types({"f32"}));
  EXPECT_EQ(error_of([&] { compile_scalar_region(function, region); }),
            "unsupported_op: line 10, column 5: 'stablehlo.all_reduce' is not supported in a region of scalar ops");
}

/// Emits one op of the named row over f32 inputs and runs it.
template <typename Out>
std::vector<Out> apply(std::string_view name, const ir::Type& result, const std::vector<float>& a,
                       ir::AttributeList attributes = {}) {
  ir::Function function;
  ir::Region region;
  region.arguments = {function.add_value(type("f32"), "%a"), function.add_value(type("f32"), "%b")};
  const auto out = append(function, region, name, {region.arguments[0]}, {result}, std::move(attributes));
  append(function, region, "stablehlo.return", {out}, {});
  return run<float, Out>(compile_scalar_region(function, region), a, a);
}

TEST(EmitScalar, ops_of_several_instructions) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(apply<float>("chlo.square", type("f32"), {-3, 0.5F}), (std::vector<float>{9, 0.25F}));
  EXPECT_EQ(apply<uint8_t>("chlo.is_inf", type("i1"), {inf, -inf, nan, 1}), (std::vector<uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(apply<uint8_t>("chlo.is_pos_inf", type("i1"), {inf, -inf, nan, 1}), (std::vector<uint8_t>{1, 0, 0, 0}));
  EXPECT_EQ(apply<uint8_t>("chlo.is_neg_inf", type("i1"), {inf, -inf, nan, 1}), (std::vector<uint8_t>{0, 1, 0, 0}));
  EXPECT_EQ(apply<float>("stablehlo.imag", type("f32"), {-3, inf}), (std::vector<float>{0, 0}));
  EXPECT_EQ(apply<float>("stablehlo.real", type("f32"), {-3, inf}), (std::vector<float>{-3, inf}));
  EXPECT_EQ(apply<float>("stablehlo.reduce_precision", type("f32"), {1.0F + 1.0F / 1024, 70000},
                         {{"exponent_bits", test::attribute(ir::IntegerAttr{5, "i32"})},
                          {"mantissa_bits", test::attribute(ir::IntegerAttr{2, "i32"})}}),
            (std::vector<float>{1, inf}));
}

TEST(EmitScalar, complex_numbers_are_ordered_by_real_then_imaginary_part) {
  ir::Function function;
  ir::Region region;
  const ir::Type scalar = type("complex<f32>");
  region.arguments = {function.add_value(scalar, "%a"), function.add_value(scalar, "%b")};
  const auto less = append(function, region, "stablehlo.compare", region.arguments, types({"i1"}),
                           {{"comparison_direction", test::attribute(ir::EnumAttr{"comparison_direction", "LT"})}});
  append(function, region, "stablehlo.return", {less}, {});
  using Complex = std::array<float, 2>;
  EXPECT_EQ((run<Complex, uint8_t>(compile_scalar_region(function, region), {{1, 9}, {1, 2}, {2, 0}, {1, 2}},
                                   {{2, 0}, {1, 3}, {1, 9}, {1, 2}})),
            (std::vector<uint8_t>{1, 1, 0, 0}));
}

}  // namespace
}  // namespace meshd::ops
