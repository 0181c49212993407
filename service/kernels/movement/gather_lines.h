// Gather of windows whose elements go to result lines: element k of all windows of a row of tuples, side by side. The
// tuples' offsets are made once for all lines of the row.
//
// Example: columns of a matrix (rows x columns) at n indices, a result of (rows x n): a window is a column, and line k
// is n elements of row k. Copied window by window, each element would come from a row of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "service/kernels/movement/index_table.h"

namespace meshd::kernels {

/// Immutable; any thread.
class GatherLines {
 public:
  /// Takes what Gather does. Nothing where lines are too short, or elements of a line are not side by side.
  static std::optional<GatherLines> make(const IndexTable& table, const tensor::Dims& window,
                                         const tensor::Dims& result_strides, const tensor::Dims& operand_strides,
                                         int64_t elem_size);

  [[nodiscard]] int64_t work_count() const { return work_count_; }
  void run(const std::byte* operand, const std::byte* indices, std::byte* result, int64_t begin, int64_t end) const;

 private:
  static constexpr size_t kMostLoops = 16;

  /// A loop around the tuples of a line. Strides in bytes.
  struct Loop {
    int64_t extent = 1;
    int64_t result_stride = 0;
    int64_t operand_stride = 0;
    int64_t index_stride = 0;
  };

  GatherLines() = default;
  void add_loop(int64_t extent, int64_t result_stride, int64_t operand_stride, int64_t index_stride);

  IndexTable table_;
  int64_t elem_size_ = 1;
  std::vector<Loop> loops_;     // of rows, of parts of a row, of elements of a window
  size_t tuple_loops_ = 0;      // so many of them, the outermost, change the tuples
  size_t part_loop_ = 0;        // the one of parts of a row
  int64_t element_bytes_ = 0;   // of the run of a window that is contiguous in both arrays
  int64_t result_stride_ = 0;   // bytes between elements of a line
  int64_t operand_stride_ = 0;  // elements between the windows of two tuples with the same numbers
  int64_t index_stride_ = 0;    // elements between two tuples
  int64_t row_tuples_ = 1;
  int64_t part_tuples_ = 1;  // tuples of a line; the last one of a row has fewer
  int64_t lines_per_work_item_ = 1;
  int64_t line_count_ = 1;
  int64_t work_count_ = 0;
};

}  // namespace meshd::kernels
