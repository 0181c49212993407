// Sums of rows times taps: the loop of convolutions of one input feature.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

/// Rows of results are at least so long.
inline constexpr int64_t kLeastTapResults = 16;

/// Elements that results read, and what they are multiplied with.
struct TapRow {
  const std::byte* elements = nullptr;  ///< result i reads elements i, i + step, ..., one for each tap
  const std::byte* taps = nullptr;
};
struct TapRows {
  const TapRow* rows = nullptr;
  int64_t row_count = 0;
  int64_t taps = 0;  ///< of each row
  int64_t step = 1;
};

/// result[i] = the sum over rows and taps, in order, for i < count, which is at least kLeastTapResults. Floats are
/// added in parts of 8, and the parts' sums in order; integers wrap around. Any thread.
using SumTapRows = void (*)(const TapRows& rows, std::byte* result, int64_t count);
SumTapRows sum_tap_rows_f32();
SumTapRows sum_tap_rows_f64();
SumTapRows sum_tap_rows_i32();
SumTapRows sum_tap_rows_i64();

}  // namespace meshd::kernels
