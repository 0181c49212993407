// The reduce row: bodies of all kinds over the reduction of the fused kernel.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "service/core/error.h"
#include "service/kernels/cpu.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "tests/support/parsed_instance.h"

namespace meshd::test {
namespace {

using tensor::Dims;
using tensor::DType;
using Cut = Instance::Cut;

std::string sum_text(const std::string& from, const std::string& to, const std::string& dims, const std::string& op,
                     const std::string& init, const std::string& scalar) {
  return "module @jit_f {\n  func.func public @main(%arg0: tensor<" + from + ">) -> tensor<" + to +
         "> {\n    %cst = stablehlo.constant dense<" + init + "> : tensor<" + scalar +
         ">\n    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo." + op + " across dimensions = [" + dims +
         "] : (tensor<" + from + ">, tensor<" + scalar + ">) -> tensor<" + to + ">\n    return %0 : tensor<" + to +
         ">\n  }\n}\n";
}

constexpr std::string_view kArgmax = R"(module @jit_f {
  func.func public @main(%arg0: tensor<5x70xf32>, %arg1: tensor<5x70xi32>) -> (tensor<5xf32>, tensor<5xi32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.reduce(%arg0 init: %cst), (%arg1 init: %c) across dimensions = [1] : (tensor<5x70xf32>, tensor<5x70xi32>, tensor<f32>, tensor<i32>) -> (tensor<5xf32>, tensor<5xi32>)
     reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
      %1 = stablehlo.compare  GT, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.compare  EQ, %arg2, %arg4,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare  LT, %arg3, %arg5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %4 = stablehlo.and %2, %3 : tensor<i1>
      %5 = stablehlo.or %1, %4 : tensor<i1>
      %6 = stablehlo.select %1, %arg2, %arg4 : tensor<i1>, tensor<f32>
      %7 = stablehlo.select %5, %arg3, %arg5 : tensor<i1>, tensor<i32>
      stablehlo.return %6, %7 : tensor<f32>, tensor<i32>
    }
    return %0#0, %0#1 : tensor<5xf32>, tensor<5xi32>
  }
}
)";

TEST(reduce, integer_sums_over_any_dims_match_the_definition) {
  std::mt19937 random(1);
  const Dims dims = {3, 5, 4, 6};
  std::vector<int32_t> values(3 * 5 * 4 * 6);
  for (int32_t& value : values) value = static_cast<int32_t>(random());
  for (const std::vector<int64_t>& reduced :
       std::vector<std::vector<int64_t>>{{0}, {3}, {1, 2}, {0, 3}, {0, 1, 2, 3}, {}}) {
    Dims kept;
    std::string kept_text;
    std::string dims_text;
    for (int64_t d = 0; d < 4; ++d) {
      const bool is_reduced = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
      if (!is_reduced) kept.push_back(dims[static_cast<size_t>(d)]);
      if (is_reduced) dims_text += (dims_text.empty() ? "" : ", ") + std::to_string(d);
    }
    for (const int64_t size : kept) kept_text += std::to_string(size) + "x";
    const ParsedInstance sum(sum_text("3x5x4x6xi32", kept_text + "i32", dims_text, "add", "7", "i32"),
                             "stablehlo.reduce");
    std::vector<uint32_t> expected(static_cast<size_t>(tensor::element_count(kept)), 7);
    int64_t at = 0;
    for_each_index(dims, [&](const Dims& index) {
      Dims to;
      for (size_t d = 0; d < 4; ++d) {
        if (std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) == reduced.end()) to.push_back(index[d]);
      }
      expected[static_cast<size_t>(position(kept, to))] += static_cast<uint32_t>(values[static_cast<size_t>(at++)]);
    });
    for (const Cut cut : {Cut::kOneCall, Cut::kBackwards}) {
      EXPECT_EQ(sum.instance.run({i32(dims, values), i32({}, {7})}, cut)[0].values<uint32_t>(), expected) << dims_text;
    }
  }
}

TEST(reduce, long_float_sum_does_not_saturate) {
  constexpr int64_t kCount = (1 << 24) + (1 << 22);
  const ParsedInstance sum(sum_text(std::to_string(kCount) + "xf32", "f32", "0", "add", "0.0", "f32"),
                           "stablehlo.reduce");
  const Array ones = f32({kCount}, std::vector<float>(static_cast<size_t>(kCount), 1));
  EXPECT_EQ(sum.instance.run({ones, f32({}, {0})})[0].values<float>(), (std::vector<float>{kCount}));
}

TEST(reduce, complex_products_round_one_of_two_products) {
  // (1 + 2^-30 + i) (1 - 2^-30 + i) is -2^-60 + 2i: rounded by itself, 1 - 2^-60 would be 1.
  const ParsedInstance product(
      sum_text("40x2xcomplex<f64>", "40xcomplex<f64>", "1", "multiply", "(1.0,0.0)", "complex<f64>"),
      "stablehlo.reduce");
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.insert(values.end(), {1 + std::ldexp(1, -30), 1, 1 - std::ldexp(1, -30), 1});
  const std::vector<double> results =
      product.instance
          .run({Array::of(DType::kComplex128, {40, 2}, values),
                Array::of<double>(DType::kComplex128, {}, std::vector<double>{1, 0})})[0]
          .values<double>();
  const bool fuses = kernels::cpu_level() != kernels::CpuLevel::kBase;
  for (size_t i = 0; i < results.size(); i += 2) {
    EXPECT_EQ(results[i], fuses ? -std::ldexp(1, -60) : 0);
    EXPECT_EQ(results[i + 1], 2);
  }
}

TEST(reduce, two_operands_with_one_body) {
  std::mt19937 random(2);
  std::vector<float> values(5 * 70);
  std::vector<int32_t> indices(5 * 70);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(random() % 50);
    indices[i] = static_cast<int32_t>(i % 70);
  }
  std::vector<float> most;
  std::vector<int32_t> where;
  for (size_t row = 0; row < 5; ++row) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * 70);
    const auto at = std::max_element(begin, begin + 70);
    most.push_back(*at);
    where.push_back(static_cast<int32_t>(at - begin));
  }
  const ParsedInstance argmax(kArgmax, "stablehlo.reduce");
  const auto results =
      argmax.instance.run({f32({5, 70}, values), i32({5, 70}, indices), f32({}, {-INFINITY}), i32({}, {0})});
  EXPECT_EQ(results[0].values<float>(), most);
  EXPECT_EQ(results[1].values<int32_t>(), where);
}

TEST(reduce, only_accumulators_with_an_op_of_their_own_combine_over_shards) {
  const auto combining = [](const ParsedInstance& parsed) {
    const auto combine =
        parsed.instance.def->combine(parsed.instance.view(parsed.operand_types, parsed.instance.declared));
    return combine ? combine->ops : std::vector<kernels::ScalarOp>();
  };
  using Ops = std::vector<kernels::ScalarOp>;
  EXPECT_EQ(combining({sum_text("4x8xf32", "4xf32", "1", "add", "0.0", "f32"), "stablehlo.reduce"}),
            Ops{kernels::ScalarOp::kAdd});
  EXPECT_EQ(combining({sum_text("4x8xi32", "4xi32", "1", "minimum", "0", "i32"), "stablehlo.reduce"}),
            Ops{kernels::ScalarOp::kMinimum});
  EXPECT_EQ(combining({kArgmax, "stablehlo.reduce"}), Ops{});
}

TEST(reduce, messages_name_the_constraint) {
  const ParsedInstance sum(sum_text("4x8xf32", "4xf32", "1", "add", "0.0", "f32"), "stablehlo.reduce");
  const auto message = [&](int64_t dim, DType init) -> std::string {
    Instance wrong = sum.instance;
    wrong.attributes = {{"dimensions", ints_attribute({dim})}};
    try {
      (void)wrong.infer({ir::Type::of({DType::kFloat32, {4, 8}}), ir::Type::of({init, {}})});
    } catch (const core::Error& error) {
      return error.detail();
    }
    return "no error";
  };
  EXPECT_EQ(message(2, DType::kFloat32), "reduce C4: dimensions must be below 2, got 2");
  EXPECT_EQ(
      message(1, DType::kInt32),
      "reduce C2: init value 0 must be a scalar of its input's type (input tensor<4x8xf32>, init value tensor<i32>)");
}

}  // namespace
}  // namespace meshd::test
