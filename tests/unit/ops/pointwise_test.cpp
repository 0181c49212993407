// Types, rules and instructions of pointwise rows.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "service/kernels/tile/tile_program.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/pointwise/pointwise.h"
#include "tests/unit/ops/support.h"

namespace meshd::ops {
namespace {

using test::error_of;
using test::Instance;
using test::type;
using test::types;

const OpDef& row(std::string_view name) { return *find_op(name); }

std::string rule_text(std::string_view name, const Instance& instance) {
  return sharding::to_sdy(*rule_of(row(name), instance.view()));
}

/// Rows whose operands all have one type, and whose result type follows from it.
bool is_uniform(const OpDef& def) {
  return std::holds_alternative<ScalarMath>(def.body) && def.name != "stablehlo.convert" &&
         def.name != "stablehlo.bitcast_convert" && def.name != "stablehlo.select" && def.name != "stablehlo.compare" &&
         def.name != "stablehlo.reduce_precision";
}

TEST(Pointwise, inferred_types_agree_with_declared_ones_for_every_dtype) {
  int accepted = 0;
  for (const OpDef& def : all_ops()) {
    if (!is_uniform(def)) continue;
    int accepted_here = 0;
    for (const tensor::DTypeRow& dtype : tensor::kDTypeTable) {
      Instance instance;
      instance.operands.assign(static_cast<size_t>(def.signature.operand_min), ir::Type::of({dtype.dtype, {2, 3}}));
      std::vector<ir::Type> inferred;
      const std::string error = error_of([&] { inferred = def.infer(instance.view()); });
      if (!error.empty()) {
        EXPECT_NE(error.find(" I"), std::string::npos) << def.name << ": " << error;
        continue;
      }
      ++accepted_here;
      ASSERT_EQ(inferred.size(), 1U) << def.name;
      EXPECT_EQ(inferred[0].dims(), (tensor::Dims{2, 3})) << def.name;
      instance.results = inferred;
      EXPECT_EQ(def.infer(instance.view()), inferred) << def.name;
      instance.results[0].tensor.dims[1] = 4;
      EXPECT_NE(error_of([&] { def.infer(instance.view()); }).find("the text declares"), std::string::npos) << def.name;
    }
    EXPECT_GT(accepted_here, 0) << def.name;
    accepted += accepted_here;
  }
  EXPECT_GT(accepted, 400);
}

TEST(Pointwise, operands_of_two_types_are_refused_with_both) {
  const Instance add{.operands = types({"4xf32", "3xf32"}), .results = {}};
  EXPECT_EQ(error_of([&] { row("stablehlo.add").infer(add.view()); }),
            "invalid_program: line 7, column 3: add C1: operands must have one type (operand 0 is tensor<4xf32>, "
            "operand 1 is "
            "tensor<3xf32>)");
}

TEST(Pointwise, element_types_are_refused_by_name) {
  const Instance floor{.operands = types({"4xi32"}), .results = {}};
  EXPECT_EQ(error_of([&] { row("stablehlo.floor").infer(floor.view()); }),
            "invalid_program: line 7, column 3: floor I1: element type must be floating-point, got tensor<4xi32>");
}

TEST(Pointwise, dynamic_dimensions_take_the_other_sides_size) {
  const Instance add{.operands = types({"?x3xf32", "2x?xf32"}), .results = {}};
  EXPECT_EQ(row("stablehlo.add").infer(add.view()), types({"2x3xf32"}));
}

TEST(Pointwise, abs_of_complex_gives_the_part) {
  const Instance abs{.operands = types({"4xcomplex<f64>"}), .results = {}};
  EXPECT_EQ(row("stablehlo.abs").infer(abs.view()), types({"4xf64"}));
}

TEST(Pointwise, compare_checks_its_attributes) {
  Instance compare{.operands = types({"4xf32", "4xf32"}), .results = {}};
  const auto infer = [&](std::string direction, std::string kind) {
    compare.attributes = {
        {"comparison_direction", test::attribute(ir::EnumAttr{"comparison_direction", std::move(direction)})}};
    if (!kind.empty())
      compare.attributes.emplace_back("compare_type",
                                      test::attribute(ir::EnumAttr{"comparison_type", std::move(kind)}));
    return error_of([&] { row("stablehlo.compare").infer(compare.view()); });
  };
  EXPECT_EQ(infer("LT", ""), "");
  EXPECT_EQ(infer("LT", "TOTALORDER"), "");
  EXPECT_NE(infer("LESS", "").find("compare I3"), std::string::npos);
  EXPECT_NE(infer("LT", "SIGNED").find("compare C3"), std::string::npos);
  compare.operands = types({"4xui8", "4xui8"});
  EXPECT_EQ(infer("GE", "UNSIGNED"), "");
  EXPECT_NE(infer("GE", "FLOAT").find("compare C3"), std::string::npos);
}

TEST(Pointwise, select_and_clamp_take_scalars) {
  const Instance select{.operands = types({"i1", "8x16xf32", "8x16xf32"}), .results = types({"8x16xf32"})};
  EXPECT_EQ(row("stablehlo.select").infer(select.view()), types({"8x16xf32"}));
  EXPECT_EQ(rule_text("stablehlo.select", select), "([], [i, j], [i, j])->([i, j]) {i=8, j=16}");
  const Instance clamp{.operands = types({"f32", "8x16xf32", "f32"}), .results = types({"8x16xf32"})};
  EXPECT_EQ(row("stablehlo.clamp").infer(clamp.view()), types({"8x16xf32"}));
  EXPECT_EQ(rule_text("stablehlo.clamp", clamp), "([], [i, j], [])->([i, j]) {i=8, j=16}");
  const Instance wrong{.operands = types({"3xf32", "8x16xf32", "f32"}), .results = {}};
  EXPECT_NE(error_of([&] { row("stablehlo.clamp").infer(wrong.view()); }).find("clamp C1"), std::string::npos);
}

TEST(Pointwise, bitcast_convert_between_widths_has_a_whole_minor_dimension) {
  const Instance split{.operands = types({"8x16xi32"}), .results = types({"8x16x4xi8"})};
  EXPECT_EQ(row("stablehlo.bitcast_convert").infer(split.view()), split.results);
  EXPECT_EQ(rule_text("stablehlo.bitcast_convert", split),
            "([i, j])->([i, j, k]) {i=8, j=16, k=4} need_replication={k}");
  const Instance join{.operands = types({"8x16x4xi8"}), .results = types({"8x16xi32"})};
  EXPECT_EQ(row("stablehlo.bitcast_convert").infer(join.view()), join.results);
  EXPECT_EQ(rule_text("stablehlo.bitcast_convert", join),
            "([i, j, k])->([i, j]) {i=8, j=16, k=4} need_replication={k}");
  const Instance wrong{.operands = types({"8x16xi32"}), .results = types({"8x16x2xi8"})};
  EXPECT_NE(error_of([&] { row("stablehlo.bitcast_convert").infer(wrong.view()); }).find("bitcast_convert C1"),
            std::string::npos);
  const Instance mixed{.operands = types({"4xcomplex<f32>"}), .results = types({"4xf64"})};
  EXPECT_NE(error_of([&] { row("stablehlo.bitcast_convert").infer(mixed.view()); }).find("bitcast_convert C2"),
            std::string::npos);
}

template <typename In, typename Out>
std::vector<Out> bitcast(const Instance& instance, std::vector<In> in, size_t count) {
  const auto kernel =
      std::get<LocalKernel>(body_of(row("stablehlo.bitcast_convert"), instance.view())).prepare(instance.view());
  std::vector<Out> out(count);
  const auto* operand = reinterpret_cast<const std::byte*>(in.data());
  auto* result = reinterpret_cast<std::byte*>(out.data());
  kernel.run({.operands = &operand, .results = &result, .begin = 0, .end = kernel.work_count});
  return out;
}

TEST(Pointwise, bitcast_convert_moves_bytes_and_packs_nibbles) {
  const Instance split{.operands = types({"2xui32"}), .results = types({"2x2xui16"})};
  EXPECT_EQ((bitcast<uint32_t, uint16_t>(split, {0x00020001, 0x00040003}, 4)), (std::vector<uint16_t>{1, 2, 3, 4}));
  const Instance nibbles{.operands = types({"2xui8"}), .results = types({"2x2xi4"})};
  EXPECT_EQ((bitcast<uint8_t, int8_t>(nibbles, {0x2F, 0x81}, 4)), (std::vector<int8_t>{-1, 2, 1, -8}));
  const Instance packed{.operands = types({"2x2xi4"}), .results = types({"2xui8"})};
  EXPECT_EQ((bitcast<int8_t, uint8_t>(packed, {-1, 2, 1, -8}, 2)), (std::vector<uint8_t>{0x2F, 0x81}));
  const Instance same{.operands = types({"2xf32"}), .results = types({"2xi32"})};
  EXPECT_TRUE(std::holds_alternative<ScalarMath>(body_of(row("stablehlo.bitcast_convert"), same.view())));
}

/// The first operand to the power of a constant, by the row's instructions.
template <class T>
std::vector<T> powers(const std::vector<T>& bases, T exponent, tensor::DType dtype) {
  kernels::TileProgram program;
  program.input_count = 1;
  program.add_register(dtype);
  const uint16_t constant = program.constant(dtype, reinterpret_cast<const std::byte*>(&exponent));
  const Instance instance{.operands = {ir::Type::of({dtype, {}}), ir::Type::of({dtype, {}})},
                          .results = {ir::Type::of({dtype, {}})}};
  const std::array<uint16_t, 2> operands = {0, constant};
  program.outputs = {
      emit_scalar(std::get<ScalarMath>(row("stablehlo.power").body), instance.view(), program, operands)};
  kernels::TileScratch scratch(program, 1);
  std::vector<T> made;
  for (const T base : bases) {
    std::memcpy(scratch.reg(0), &base, sizeof(T));
    kernels::run_tile(program, scratch, 1);
    T power = 0;
    std::memcpy(&power, scratch.reg(program.outputs[0]), sizeof(T));
    made.push_back(power);
  }
  return made;
}

template <class T>
void check_powers(tensor::DType dtype) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> bases = {0,
                          -T{0},
                          1,
                          -1,
                          T{-2.5},
                          Limits::infinity(),
                          -Limits::infinity(),
                          Limits::quiet_NaN(),
                          Limits::max(),
                          Limits::lowest(),
                          Limits::min(),
                          Limits::denorm_min()};
  for (int i = -300; i <= 300; ++i) bases.push_back(static_cast<T>(std::exp(i * 0.07)));
  for (const T exponent : {T{0.5}, T{1.5}, T{2}, T{3}, T{2.5}}) {
    const std::vector<T> got = powers(bases, exponent, dtype);
    for (size_t i = 0; i < bases.size(); ++i) {
      const T expected =
          static_cast<T>(std::pow(static_cast<long double>(bases[i]), static_cast<long double>(exponent)));
      if (std::isnan(expected) || std::isinf(expected) || expected == 0) {
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(got[i])
                                         : got[i] == expected && std::signbit(got[i]) == std::signbit(expected))
            << bases[i] << " to the power of " << exponent << ": " << got[i];
      } else {
        EXPECT_LE(std::abs(got[i] - expected),
                  std::max(2 * Limits::epsilon() * std::abs(expected), Limits::denorm_min()))
            << bases[i] << " to the power of " << exponent << ": " << got[i];
      }
    }
  }
}

TEST(Pointwise, powers_of_constant_exponents_are_those_of_the_function) {
  check_powers<float>(tensor::DType::kFloat32);
  check_powers<double>(tensor::DType::kFloat64);
}

}  // namespace
}  // namespace meshd::ops
