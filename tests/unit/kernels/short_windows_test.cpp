#include "service/kernels/window/short_windows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "service/tensor/half.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

double read(DType dtype, const std::byte* from, int64_t at) {
  if (dtype == DType::kFloat64) return reinterpret_cast<const double*>(from)[at];
  if (dtype == DType::kFloat32) return reinterpret_cast<const float*>(from)[at];
  if (dtype == DType::kInt32) return reinterpret_cast<const int32_t*>(from)[at];
  if (dtype == DType::kUint8) return reinterpret_cast<const uint8_t*>(from)[at];
  return tensor::bfloat16_to_float(reinterpret_cast<const uint16_t*>(from)[at]);
}

void write(DType dtype, std::byte* to, int64_t at, double value) {
  if (dtype == DType::kFloat64) reinterpret_cast<double*>(to)[at] = value;
  if (dtype == DType::kFloat32) reinterpret_cast<float*>(to)[at] = static_cast<float>(value);
  const bool is_number = value > -1e9 && value < 1e9;
  if (dtype == DType::kInt32) reinterpret_cast<int32_t*>(to)[at] = is_number ? static_cast<int32_t>(value) : 7;
  if (dtype == DType::kUint8)
    reinterpret_cast<uint8_t*>(to)[at] = static_cast<uint8_t>(is_number ? static_cast<int64_t>(value) : 7);
  if (dtype == DType::kBfloat16)
    reinterpret_cast<uint16_t*>(to)[at] = tensor::float_to_bfloat16(static_cast<float>(value));
}

/// Zeros are ordered, and NaN wins.
double combined(ScalarOp op, double a, double b) {
  if (op == ScalarOp::kAdd) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  const bool is_first = a != b ? a > b : !std::signbit(a);
  return is_first == (op == ScalarOp::kMaximum) ? a : b;
}

struct Problem {
  ScalarOp op = ScalarOp::kAdd;
  DType dtype = DType::kFloat32;
  std::vector<WindowDim> dims;
  int64_t lead = 1;
  int64_t inner = 1;
};

/// Rows across, then down, then the initial value before: the order in which sums of doubles are rounded.
std::vector<double> by_definition(const Problem& problem, const std::byte* input, double init) {
  const bool has_both = problem.dims.size() == 2;
  const WindowDim columns = problem.dims.back();
  const WindowDim rows = has_both ? problem.dims[0] : WindowDim{.size = 1};
  std::vector<double> out;
  for (int64_t lead = 0; lead < problem.lead; ++lead) {
    for (int64_t r = 0; r < rows.output_size(); ++r) {
      for (int64_t c = 0; c < columns.output_size(); ++c) {
        for (int64_t lane = 0; lane < problem.inner; ++lane) {
          std::optional<double> down;
          for (int64_t i = 0; i < rows.window; ++i) {
            const int64_t row = rows.row_at(r * rows.stride - rows.pad_low + i);
            std::optional<double> across;
            for (int64_t k = 0; row >= 0 && k < columns.window; ++k) {
              const int64_t column = columns.row_at(c * columns.stride - columns.pad_low + k);
              if (column < 0) continue;
              const int64_t at = ((lead * rows.size + row) * columns.size + column) * problem.inner + lane;
              const double element = read(problem.dtype, input, at);
              across = across ? combined(problem.op, *across, element) : element;
            }
            if (across) down = down ? combined(problem.op, *down, *across) : *across;
          }
          out.push_back(combined(problem.op, init, *down));
        }
      }
    }
  }
  return out;
}

TEST(short_windows, random_windows_match_the_definition) {
  std::mt19937 random(3);
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
  int64_t made = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    Problem problem;
    problem.op = trial % 3 == 0 ? ScalarOp::kAdd : trial % 3 == 1 ? ScalarOp::kMaximum : ScalarOp::kMinimum;
    const DType narrow = problem.op == ScalarOp::kAdd ? DType::kFloat32 : DType::kBfloat16;
    problem.dtype = trial % 7 == 0   ? DType::kInt32
                    : trial % 7 == 1 ? DType::kUint8
                    : trial % 4 == 0 ? DType::kFloat64
                    : trial % 4 == 1 ? narrow
                                     : DType::kFloat32;
    problem.lead = 1 + upto(3);
    problem.inner = upto(1) == 0 ? 1 : 2 + upto(40);
    const int64_t rank = 1 + upto(1);
    for (int64_t d = 0; d < rank; ++d) {
      const bool is_across = d + 1 == rank && problem.inner == 1;
      const int64_t longest = trial % 100 == 10 && rank == 1 ? 20'000 : trial % 5 == 0 ? 900 : 70;  // cut into pieces
      WindowDim dim{.size = 1 + upto(is_across ? longest : 12),
                    .window = 1 + upto(trial % 2 == 0 ? 5
                                       : is_across    ? 31
                                                      : 15),
                    .stride = 1 + upto(3)};
      dim.pad_low = upto(dim.window - 1);
      dim.pad_high = upto(dim.window - 1);
      problem.dims.push_back(dim);
    }
    if (problem.dims.back().output_size() == 0 || problem.dims.front().output_size() == 0) continue;
    const auto windows = ShortWindows::make(problem.op, problem.dtype, problem.dims, problem.lead, problem.inner);
    if (!windows) continue;
    ++made;
    int64_t elements = problem.lead * problem.inner;
    int64_t results = elements;
    for (const WindowDim& dim : problem.dims) {
      elements *= dim.size;
      results *= dim.output_size();
    }
    const int64_t bytes = tensor::size_bytes(problem.dtype);
    // Exactly as large as the arrays, so that a sanitizer sees what is read beyond.
    const auto input = std::make_unique<std::byte[]>(static_cast<size_t>(elements * bytes));
    for (int64_t i = 0; i < elements; ++i) {
      double value = std::ldexp(static_cast<double>(upto(2000)) - 1000, static_cast<int>(upto(20)));
      if (upto(20) == 0) value = upto(1) == 0 ? 0.0 : -0.0;
      if (upto(100) == 0) value = std::numeric_limits<double>::infinity();
      if (upto(200) == 0) value = std::numeric_limits<double>::quiet_NaN();
      if (tensor::is_integer(problem.dtype)) value = static_cast<double>(upto(200));  // sums of bytes wrap around
      write(problem.dtype, input.get(), i, value);
    }
    alignas(8) std::byte init[8]{};
    write(problem.dtype, init, 0, upto(1) == 0 ? -0.0 : 3.5);
    const auto result = std::make_unique<std::byte[]>(static_cast<size_t>(results * bytes));
    std::vector<std::byte> scratch(static_cast<size_t>(windows->scratch_bytes()));
    // Work items one by one and backwards: each must stand alone.
    for (int64_t item = windows->work_count(); item-- > 0;) {
      windows->run({.input = input.get(),
                    .init = init,
                    .result = result.get(),
                    .begin = item,
                    .end = item + 1,
                    .scratch = scratch.data()});
    }
    const std::vector<double> expected = by_definition(problem, input.get(), read(problem.dtype, init, 0));
    for (int64_t i = 0; i < results; ++i) {
      alignas(8) std::byte rounded[8]{};
      write(problem.dtype, rounded, 0, expected[static_cast<size_t>(i)]);
      const double wanted = read(problem.dtype, rounded, 0);
      const double got = read(problem.dtype, result.get(), i);
      const bool is_same = std::isnan(wanted) ? std::isnan(got) : std::memcmp(&wanted, &got, sizeof(got)) == 0;
      ASSERT_TRUE(is_same) << "trial " << trial << " lane " << i << ": " << got << " for " << wanted;
    }
  }
  EXPECT_GT(made, 700);
}

TEST(short_windows, what_is_long_or_may_be_empty_has_none) {
  const WindowDim pool{.size = 20, .window = 3, .stride = 2};
  const auto is_made = [&](ScalarOp op, DType dtype, const WindowDim& dim, int64_t inner) {
    return ShortWindows::make(op, dtype, {dim}, 1, inner).has_value();
  };
  EXPECT_TRUE(is_made(ScalarOp::kMaximum, DType::kFloat32, pool, 1));
  EXPECT_TRUE(is_made(ScalarOp::kAdd, DType::kInt32, pool, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kInt16, pool, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMultiply, DType::kFloat32, pool, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, pool, 3));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 80, .window = 33}, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 80, .window = 17}, 16));
  EXPECT_TRUE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 1'000'000, .window = 9}, 1)) << "in pieces";
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 20, .window = 3, .window_dilation = 2}, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 20, .window = 3, .base_dilation = 2}, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 20, .window = 3, .pad_low = 3}, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 20, .window = 3, .pad_high = 3}, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 20, .window = 3, .pad_low = -1}, 1));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 0, .window = 3, .pad_low = 2, .pad_high = 2}, 16));
  EXPECT_FALSE(is_made(ScalarOp::kMaximum, DType::kFloat32, {.size = 0, .window = 3, .pad_low = 9, .pad_high = 9}, 1));
}

}  // namespace
}  // namespace meshd::kernels
