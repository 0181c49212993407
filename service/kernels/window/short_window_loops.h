// Loops of short windows of well-known reducers: across a row, then down the rows that came of it. Combinations are in
// registers, where a pass of WindowPass is a kernel call for a few lanes. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/kernels/elementwise/scalar_op.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Longer windows are combined block by block (WindowPass), three combinations an element.
inline constexpr int64_t kMostShortWindow = 32;

/// The windows of a row: window j has the elements j * stride - pad_low + k for k < window <= kMostShortWindow, as far
/// as the row has them, each of `inner` lanes. Every window has an element.
struct WindowsAcross {
  int64_t windows = 0;
  int64_t window = 1;
  int64_t stride = 1;
  int64_t pad_low = 0;
  int64_t size = 0;  ///< elements of a row
  int64_t inner = 1;
};

/// Rows that become one, and the initial value before them.
struct RowsDown {
  const std::byte* init = nullptr;         ///< an element
  const std::byte* const* rows = nullptr;  ///< of accumulators
  int64_t count = 0;
  int64_t lanes = 0;
};

/// The loops of one reducer on one type, for this processor.
struct ShortWindowLoops {
  int64_t accumulator_bytes = 0;
  bool elements_are_accumulators = false;
  /// One accumulator for each lane of each window of the row.
  void (*across)(const WindowsAcross& across, const std::byte* row, std::byte* accumulators) = nullptr;
  /// One element of the result for each lane.
  void (*down)(const RowsDown& down, std::byte* result) = nullptr;
};

/// Those of an op on a type, with the bits of the fold's loops (find_fold), but for sums of floats, which are added in
/// another order; `across` is null where there are none.
ShortWindowLoops short_window_loops(ScalarOp op, tensor::DType dtype);

}  // namespace meshd::kernels
