// Reductions to the place of the greatest or least value against the reducer's program, one element after another.
#include "service/kernels/fold/argmax_fold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "tests/unit/kernels/fused_support.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;
using tensor::DType;

/// The reducer of jax.numpy.argmax and argmin.
TileProgram argmax_reducer(DType dtype, ScalarOp beats) {
  TileProgram reducer;
  reducer.input_count = 4;
  for (const DType type : {dtype, DType::kInt32, dtype, DType::kInt32}) reducer.add_register(type);
  const uint16_t better = reducer.emit(beats, {0, 2}, DType::kBool);
  const uint16_t is_nan = reducer.emit(ScalarOp::kCompareNe, {0, 0}, DType::kBool);
  const uint16_t keeps = reducer.emit(ScalarOp::kOr, {better, is_nan}, DType::kBool);
  const uint16_t equal = reducer.emit(ScalarOp::kCompareEq, {0, 2}, DType::kBool);
  const uint16_t earlier = reducer.emit(ScalarOp::kCompareLt, {1, 3}, DType::kBool);
  const uint16_t tie = reducer.emit(ScalarOp::kAnd, {equal, earlier}, DType::kBool);
  const uint16_t keeps_index = reducer.emit(ScalarOp::kOr, {keeps, tie}, DType::kBool);
  reducer.outputs = {reducer.emit(ScalarOp::kSelect, {keeps, 0, 2}, dtype),
                     reducer.emit(ScalarOp::kSelect, {keeps_index, 1, 3}, DType::kInt32)};
  return reducer;
}

/// The same otherwise spelled.
TileProgram swapped_reducer(DType dtype) {
  TileProgram reducer;
  reducer.input_count = 4;
  for (const DType type : {dtype, DType::kInt32, dtype, DType::kInt32}) reducer.add_register(type);
  const uint16_t is_nan = reducer.emit(ScalarOp::kCompareNe, {0, 0}, DType::kBool);
  const uint16_t better = reducer.emit(ScalarOp::kCompareLt, {2, 0}, DType::kBool);
  const uint16_t keeps = reducer.emit(ScalarOp::kOr, {is_nan, better}, DType::kBool);
  const uint16_t tie = reducer.emit(ScalarOp::kCompareEq, {2, 0}, DType::kBool);
  const uint16_t later = reducer.emit(ScalarOp::kCompareGe, {1, 3}, DType::kBool);
  const uint16_t of_tie = reducer.emit(ScalarOp::kSelect, {later, 3, 1}, DType::kInt32);
  const uint16_t of_other = reducer.emit(ScalarOp::kSelect, {tie, of_tie, 3}, DType::kInt32);
  reducer.outputs = {reducer.emit(ScalarOp::kSelect, {keeps, 0, 2}, dtype),
                     reducer.emit(ScalarOp::kSelect, {keeps, 1, of_other}, DType::kInt32)};
  return reducer;
}

/// Without the comparison that lets a NaN win.
TileProgram reducer_without_nan(DType dtype) {
  TileProgram reducer;
  reducer.input_count = 4;
  for (const DType type : {dtype, DType::kInt32, dtype, DType::kInt32}) reducer.add_register(type);
  const uint16_t keeps = reducer.emit(ScalarOp::kCompareGt, {0, 2}, DType::kBool);
  const uint16_t equal = reducer.emit(ScalarOp::kCompareEq, {0, 2}, DType::kBool);
  const uint16_t earlier = reducer.emit(ScalarOp::kCompareLt, {1, 3}, DType::kBool);
  const uint16_t tie = reducer.emit(ScalarOp::kAnd, {equal, earlier}, DType::kBool);
  const uint16_t keeps_index = reducer.emit(ScalarOp::kOr, {keeps, tie}, DType::kBool);
  reducer.outputs = {reducer.emit(ScalarOp::kSelect, {keeps, 0, 2}, dtype),
                     reducer.emit(ScalarOp::kSelect, {keeps_index, 1, 3}, DType::kInt32)};
  return reducer;
}

TEST(ArgmaxFold, reducers_are_known_by_what_they_choose) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kInt32, DType::kBool, DType::kFloat64}) {
    EXPECT_EQ(as_argmax_reducer(argmax_reducer(dtype, ScalarOp::kCompareGt)), ArgmaxOrder::kGreatest);
    EXPECT_EQ(as_argmax_reducer(argmax_reducer(dtype, ScalarOp::kCompareLt)), ArgmaxOrder::kLeast);
    EXPECT_EQ(as_argmax_reducer(argmax_reducer(dtype, ScalarOp::kCompareGe)), std::nullopt);
    EXPECT_EQ(as_argmax_reducer(argmax_reducer(dtype, ScalarOp::kCompareEq)), std::nullopt);
    EXPECT_EQ(as_argmax_reducer(swapped_reducer(dtype)), ArgmaxOrder::kGreatest);
  }
  EXPECT_EQ(as_argmax_reducer(reducer_without_nan(DType::kInt32)), ArgmaxOrder::kGreatest);
  EXPECT_EQ(as_argmax_reducer(reducer_without_nan(DType::kFloat32)), std::nullopt);
  TileProgram later_index = argmax_reducer(DType::kInt32, ScalarOp::kCompareGt);
  later_index.outputs[1] = 3;
  EXPECT_EQ(as_argmax_reducer(later_index), std::nullopt);
  TileProgram computed = argmax_reducer(DType::kInt32, ScalarOp::kCompareGt);
  computed.outputs[0] = computed.emit(ScalarOp::kAdd, {computed.outputs[0], 0}, DType::kInt32);
  EXPECT_EQ(as_argmax_reducer(computed), std::nullopt);
}

/// What a case's values are like.
enum class Values : uint8_t { kFew, kSpecial, kNumbers };

Bytes elements(DType dtype, const std::vector<float>& values) {
  Bytes bytes(values.size() * static_cast<size_t>(tensor::size_bytes(dtype)));
  if (dtype == DType::kFloat32) return bytes_of(values);
  const auto* const from = reinterpret_cast<const std::byte*>(values.data());
  find_scalar_kernel(ScalarOp::kConvert, DType::kFloat32, dtype)(&from, bytes.data(),
                                                                 static_cast<int64_t>(values.size()));
  return bytes;
}

std::vector<float> random_values(Values kind, int64_t count, std::mt19937& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::array<float, 7> special = {0.0F, -0.0F, kInfinity, -kInfinity, 1e-42F, std::nanf("1"), -std::nanf("2")};
  std::normal_distribution<float> normal;
  const bool only_zeros = random() % 4 == 0;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    const uint32_t draw = random() % 200;
    value = 100 * normal(random);
    if (kind == Values::kFew) value = static_cast<float>(draw % 3);
    if (kind == Values::kSpecial && draw < special.size()) value = special[draw];
    if (kind == Values::kSpecial && only_zeros) value = draw % 2 == 0 ? 0.0F : -0.0F;
  }
  return values;
}

struct Case {
  Dims dims;
  std::vector<int> reduced;
  int index_dim = 0;
};

FusedLoop loop_of(const Case& of, DType dtype, TileProgram reducer, bool computes) {
  FusedLoop loop;
  loop.dims = of.dims;
  loop.program.input_count = 2;
  // The index is the first input or the second one.
  const size_t value = of.dims.back() % 2 == 0 ? 0 : 1;
  loop.inputs.resize(2);
  loop.inputs[value].strides = tensor::row_major_strides(of.dims);
  loop.inputs[1 - value].kind = FusedInput::Kind::kIota;
  loop.inputs[1 - value].iota_dim = of.index_dim;
  for (size_t i = 0; i < 2; ++i) loop.program.add_register(i == value ? dtype : DType::kInt32);
  auto reg = static_cast<uint16_t>(value);
  if (computes) reg = loop.program.emit(ScalarOp::kMaximum, {reg, reg}, dtype);
  loop.program.outputs = {reg, static_cast<uint16_t>(1 - value)};
  loop.reduce = FusedReduce{.dims = of.reduced, .reducer = std::move(reducer), .init_operands = {1, 2}};
  return loop;
}

std::vector<Case> cases() {
  std::vector<Case> all = {{{0}, {0}},
                           {{7, 0}, {1}, 1},
                           {{3000}, {0}},
                           {{5, 1000}, {1}, 1},
                           {{5, 300}, {0}},
                           {{1500, 3}, {0}},
                           {{200, 10}, {0}},
                           {{3, 70, 63}, {1}, 1},
                           {{3, 20, 64}, {1}, 1},
                           {{3, 40, 100}, {1}, 1},
                           {{70, 511}, {0}},
                           {{4, 30, 5}, {0, 1}, 0},
                           {{4, 30, 5}, {0, 1}, 1},
                           {{4, 5, 33}, {0, 2}, 0},
                           {{4, 5, 33}, {0, 2}, 2},
                           {{6, 7, 8}, {1, 2}, 1},
                           {{6, 7, 8}, {1, 2}, 2},
                           {{11, 1, 40}, {2}, 2},
                           {{9, 40}, {1}, 0},
                           {{40, 9}, {0}, 1}};
  for (int items = 1; items < 100; ++items) all.push_back({{21, items}, {1}, 1});
  for (const int items : {255, 256, 257, 271, 272, 273, 512, 1100}) all.push_back({{3, items}, {1}, 1});
  return all;
}

TEST(ArgmaxFold, results_are_those_of_one_element_after_another) {
  std::mt19937 random(5);
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16, DType::kInt32, DType::kUint32,
                            DType::kInt8, DType::kBool, DType::kFloat64}) {
    for (const Case& of : cases()) {
      for (const Values kind : {Values::kFew, Values::kSpecial, Values::kNumbers}) {
        if (kind == Values::kSpecial && !tensor::is_float(dtype)) continue;
        const ScalarOp beats = random() % 2 == 0 ? ScalarOp::kCompareGt : ScalarOp::kCompareLt;
        const bool computes = random() % 3 == 0 && dtype != DType::kBool;
        const FusedLoop loop = loop_of(of, dtype, argmax_reducer(dtype, beats), computes);
        const std::vector<float> init = random_values(kind, 1, random);
        const std::vector<Bytes> operands = {
            elements(dtype, random_values(kind, tensor::element_count(of.dims), random)), elements(dtype, init),
            bytes_of(std::vector<int32_t>{static_cast<int32_t>(random() % 3)})};
        const Dims offsets(of.dims.size(), 17);
        const FusedKernel kernel(loop);
        const std::vector<int64_t> cuts = {kernel.work_count() / 2};
        ASSERT_EQ(run_kernel(kernel, operands, cuts, offsets), run_naively(loop, operands, offsets))
            << tensor::name(dtype) << " of rank " << of.dims.size() << ", first dim " << of.dims[0] << ", last dim "
            << of.dims.back() << ", index of dim " << of.index_dim << ", values " << static_cast<int>(kind);
      }
    }
  }
}

}  // namespace
}  // namespace meshd::kernels
