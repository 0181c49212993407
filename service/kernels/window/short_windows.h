// reduce_window of short windows over one or two neighbouring dimensions, of maxima, minima and sums: pooling. Each row
// is combined across once, as one row of accumulators; rows of windows are combined from these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/window/short_window_loops.h"
#include "service/kernels/window/window.h"

namespace meshd::kernels {

/// Arrays of (lead, rows, columns, inner): windows over rows and columns.
struct ShortWindowsCall {
  const std::byte* input = nullptr;
  const std::byte* init = nullptr;
  std::byte* result = nullptr;
  int64_t begin = 0;  ///< range of work items
  int64_t end = 0;
  std::byte* scratch = nullptr;  ///< scratch_bytes() of this call alone, aligned to 64
  core::Checkpoint* checkpoint = nullptr;
};

/// Immutable; any thread. Work items are rows of windows, by shapes alone.
class ShortWindows {
 public:
  /// `dims`: those from the first to the last with windows. Nothing where the op or the type has no loops, where a
  /// window is long, dilated or may be empty, where lanes are too few, or rows of windows over two dims too long.
  static std::optional<ShortWindows> make(ScalarOp op, tensor::DType dtype, const std::vector<WindowDim>& dims,
                                          int64_t lead, int64_t inner);

  [[nodiscard]] int64_t work_count() const { return work_count_; }
  [[nodiscard]] int64_t scratch_bytes() const { return rows_.window * accumulator_row_bytes_; }
  void run(const ShortWindowsCall& call) const;

 private:
  ShortWindows() = default;
  struct Piece {
    WindowsAcross across;
    int64_t from = 0;  ///< bytes in the row
    int64_t to = 0;    ///< and in its result
  };
  [[nodiscard]] Piece piece(int64_t number) const;

  ShortWindowLoops loops_;
  WindowDim rows_;
  WindowsAcross across_;
  bool reads_rows_ = false;  ///< columns have no windows, and rows are accumulators as they are
  int64_t windows_down_ = 0;
  int64_t pieces_ = 1;         ///< of a long row, whose windows go across alone
  int64_t piece_windows_ = 0;  ///< of each piece but the last one
  int64_t row_bytes_ = 0;
  int64_t accumulator_row_bytes_ = 0;
  int64_t result_row_bytes_ = 0;
  int64_t result_rows_ = 0;  ///< of all lead indices
  int64_t rows_per_work_item_ = 1;
  int64_t work_count_ = 0;
};

}  // namespace meshd::kernels
