#include "service/kernels/movement/scatter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/unit/kernels/window_problem.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

/// Small numbers, so that many updates change a sum; among floats special ones.
std::vector<std::byte> random_elements(Dice& dice, DType dtype, int64_t count) {
  std::vector<std::byte> out = dice.bytes(count * tensor::size_bytes(dtype));
  const auto put = [&]<typename T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      T value = static_cast<T>(dice.upto(2000) - 1000) / 8;
      if (dice.upto(20) == 0) value = static_cast<T>(-0.0);
      if (dice.upto(40) == 0) value = std::numeric_limits<T>::infinity();
      if (dice.upto(60) == 0) value = std::numeric_limits<T>::quiet_NaN();
      std::memcpy(out.data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    }
  };
  if (dtype == DType::kFloat32) put(float{});
  if (dtype == DType::kFloat64) put(double{});
  return out;
}

/// NaNs as one: which payload a sum of two has is open.
std::vector<std::byte> with_one_nan(std::vector<std::byte> elements, DType dtype) {
  const auto unify = [&]<typename T>(T) {
    for (size_t at = 0; at < elements.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, elements.data() + at, sizeof(T));
      if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
      std::memcpy(elements.data() + at, &value, sizeof(T));
    }
  };
  if (dtype == DType::kFloat32) unify(float{});
  if (dtype == DType::kFloat64) unify(double{});
  if (dtype == DType::kBfloat16 || dtype == DType::kFloat16) {
    const int infinity = dtype == DType::kBfloat16 ? 0x7F80 : 0x7C00;
    for (size_t at = 0; at < elements.size(); at += 2) {
      uint16_t code;
      std::memcpy(&code, elements.data() + at, sizeof(code));
      if ((code & 0x7FFF) > infinity) code = 0x7FFF;
      std::memcpy(elements.data() + at, &code, sizeof(code));
    }
  }
  return elements;
}

/// The element becomes op(element, update); kCopy: the update.
TileProgram body_of(ScalarOp op, DType dtype) {
  TileProgram body;
  body.input_count = 2;
  const uint16_t element = body.add_register(dtype);
  const uint16_t update = body.add_register(dtype);
  body.outputs.push_back(op == ScalarOp::kCopy ? update : body.emit(op, {element, update}, dtype));
  return body;
}

std::vector<std::byte> by_definition(const WindowProblem& problem, std::vector<std::byte> array,
                                     const std::vector<std::byte>& updates, ScalarOp op, DType dtype) {
  const int64_t size = tensor::size_bytes(dtype);
  const ScalarKernel kernel = op == ScalarOp::kCopy ? nullptr : find_scalar_kernel(op, dtype, dtype);
  visit_elements(
      problem, [](int64_t number, int64_t last) { return number <= last ? number : -1; },
      [&](int64_t to, int64_t from) {
        const std::byte* const operands[2] = {array.data() + to * size, updates.data() + from * size};
        if (kernel == nullptr) {
          std::memcpy(array.data() + to * size, operands[1], static_cast<size_t>(size));
        } else {
          kernel(operands, array.data() + to * size, 1);
        }
      });
  return array;
}

TEST(scatter, random_shapes_types_and_operations_match_the_definition) {
  for (unsigned seed = 0; seed < 800; ++seed) {
    Dice dice(seed);
    const DType dtype = dice.pick({DType::kFloat32, DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kInt8,
                                   DType::kUint16, DType::kInt32, DType::kInt64, DType::kUint64, DType::kFloat16});
    const bool is_float =
        dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBfloat16 || dtype == DType::kFloat16;
    const ScalarOp op = dice.pick({ScalarOp::kCopy, ScalarOp::kAdd, ScalarOp::kAdd, ScalarOp::kMultiply,
                                   ScalarOp::kMaximum, ScalarOp::kMinimum, is_float ? ScalarOp::kAdd : ScalarOp::kOr,
                                   is_float ? ScalarOp::kSubtract : ScalarOp::kAnd});
    const WindowProblem problem = random_problem(dice);
    const std::vector<std::byte> array = random_elements(dice, dtype, problem.array_elements);
    const std::vector<std::byte> updates = random_elements(dice, dtype, problem.slice_elements);
    IndexTable merged = problem.table;
    merged.merge_batch();
    const Scatter scatter(merged, problem.window, problem.slice_strides, problem.array_strides, problem.array_elements,
                          body_of(op, dtype));
    std::vector<std::byte> got(array.size());
    std::vector<std::byte> workspace(static_cast<size_t>(scatter.workspace_bytes()));
    const std::byte* const sources[1] = {array.data()};
    const std::byte* const from[1] = {updates.data()};
    std::byte* const results[1] = {got.data()};
    scatter.run({.sources = sources,
                 .results = results,
                 .indices = problem.indices.data(),
                 .updates = from,
                 .workspace = workspace.data(),
                 .end = scatter.work_count()});
    ASSERT_EQ(with_one_nan(by_definition(problem, array, updates, op, dtype), dtype), with_one_nan(got, dtype))
        << "seed " << seed << " " << name(op) << " of " << tensor::name(dtype);
  }
}

/// Sums of so many are exact in any order.
std::vector<std::byte> whole_numbers(Dice& dice, DType dtype, int64_t count) {
  const ScalarKernel convert = find_scalar_kernel(ScalarOp::kConvert, DType::kInt8, dtype);
  const int64_t size = tensor::size_bytes(dtype);
  std::vector<std::byte> out(static_cast<size_t>(count * size));
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<int8_t>(dice.upto(20) - 10);
    const std::byte* const from[1] = {reinterpret_cast<const std::byte*>(&value)};
    convert(from, out.data() + i * size, 1);
  }
  return out;
}

// A histogram: many updates of few elements, or of short runs, is a sum of parts. Rows are dealt to buckets.
TEST(scatter, many_updates_are_dealt_to_parts_or_buckets) {
  for (unsigned seed = 0; seed < 48; ++seed) {
    Dice dice(seed);
    const DType dtype = dice.pick({DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUint8});
    const int64_t run = dice.pick<int64_t>({1, 1, 3, 16, 40, 64, 100});
    const int64_t targets = run < 16 ? 1 + dice.upto(300) : dice.pick<int64_t>({2, 20, 20'000});
    const int64_t count = run < 16 ? 70'000 + dice.upto(9'000) : 5'000 + dice.upto(900);
    WindowProblem problem;
    problem.table.batch = {count};
    problem.table.batch_strides = {1};
    problem.table.operand_strides = {0};
    problem.table.slice_strides = {run};
    problem.table.components = {{targets - 1, run}};
    problem.window = {1, run};
    problem.slice_strides = {1, 1};
    problem.array_strides = {run, 1};
    problem.array_elements = targets * run;
    problem.slice_elements = count * run;
    problem.indices = random_indices(dice, problem.table.dtype, count, targets);
    const std::vector<std::byte> updates = whole_numbers(dice, dtype, problem.slice_elements);
    const std::vector<std::byte> array = whole_numbers(dice, dtype, problem.array_elements);
    const Scatter scatter(problem.table, problem.window, problem.slice_strides, problem.array_strides,
                          problem.array_elements, body_of(ScalarOp::kAdd, dtype));
    const bool is_cached = run >= 16 && problem.array_elements * tensor::size_bytes(dtype) <= 256 * 1024;
    ASSERT_EQ(scatter.barrier() == 0, is_cached) << seed << " " << tensor::name(dtype) << " " << run << " " << targets;
    std::vector<std::byte> got = array;  // the array's own memory
    std::vector<std::byte> workspace = dice.bytes(scatter.workspace_bytes());
    const std::byte* const sources[1] = {got.data()};
    const std::byte* const from[1] = {updates.data()};
    std::byte* const results[1] = {got.data()};
    // Others may run the first work items in another order.
    for (int64_t item = scatter.barrier(); item-- > 0;) {
      scatter.run({.sources = sources,
                   .results = results,
                   .indices = problem.indices.data(),
                   .updates = from,
                   .workspace = workspace.data(),
                   .begin = item,
                   .end = item + 1});
    }
    scatter.run({.sources = sources,
                 .results = results,
                 .indices = problem.indices.data(),
                 .updates = from,
                 .workspace = workspace.data(),
                 .begin = scatter.barrier(),
                 .end = scatter.work_count()});
    ASSERT_EQ(by_definition(problem, array, updates, ScalarOp::kAdd, dtype), got)
        << "seed " << seed << " " << tensor::name(dtype);
  }
}

// A sum of -0 stays -0; what rounds much keeps its order.
TEST(scatter, sums_of_parts_keep_zeros_and_narrow_floats_are_none) {
  IndexTable table;
  table.batch = {100'000};
  table.batch_strides = {1};
  table.operand_strides = {0};
  table.slice_strides = {1};
  table.components = {{9, 1}};
  const auto of = [&](DType dtype) { return Scatter(table, {1}, {1}, {1}, 10, body_of(ScalarOp::kAdd, dtype)); };
  EXPECT_EQ(of(DType::kBfloat16).barrier(), 0);
  const Scatter scatter = of(DType::kFloat32);
  const std::vector<int32_t> indices(100'000, 3);
  const std::vector<float> updates(100'000, -0.0F);
  std::vector<float> sums(10, -0.0F);
  std::vector<std::byte> workspace(static_cast<size_t>(scatter.workspace_bytes()));
  const auto* const from = reinterpret_cast<const std::byte*>(updates.data());
  auto* const to = reinterpret_cast<std::byte*>(sums.data());
  const std::byte* const source = to;
  scatter.run({.sources = &source,
               .results = &to,
               .indices = reinterpret_cast<const std::byte*>(indices.data()),
               .updates = &from,
               .workspace = workspace.data(),
               .end = scatter.work_count()});
  for (const float sum : sums) EXPECT_TRUE(sum == 0 && std::signbit(sum));
}

}  // namespace
}  // namespace meshd::kernels
