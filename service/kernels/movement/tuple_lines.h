// Gathers and scatters line by line: index tuples along one batch dim are a row, and a line is the same element (or the
// same short run of elements) of the windows of all tuples of a row. The offsets of the row's tuples are made once for
// all its lines. Sizes and strides in elements but where bytes are said.
//
// Example: columns of a matrix (rows x columns) at n indices, a result of (rows x n): a window is a column, and line k
// is n elements of row k. Window by window, each element would come from a row of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "service/kernels/movement/index_table.h"
#include "service/kernels/movement/tuple_offsets.h"

namespace meshd::kernels {

/// One line, places in bytes: its element i is in the array at array_at + offsets[i] elements, in the slices (a
/// gather's result, a scatter's updates) at slice_at + i * slice_stride_bytes().
struct TupleLine {
  int64_t array_at = 0;
  int64_t slice_at = 0;
  const uint32_t* offsets = nullptr;
  int64_t count = 0;
};

/// The elements of one window that have lines: dims around the run that is one element of a line.
struct LineWindow {
  tensor::Dims dims;
  tensor::Dims slice_strides;
  tensor::Dims array_strides;
};

/// Lines in order: rows of tuples, parts of a row, then elements of a window. Immutable; any thread.
class TupleLines {
 public:
  static constexpr size_t kMostLoops = 16;

  /// `row`: the batch dim whose tuples make a row; 0 where the table has none. has_narrow_offsets() of the table holds,
  /// its batch and the window together have fewer than kMostLoops dims, and there are at most kTuplesAtOnce
  /// `part_tuples` to a line. `elem_size` in bytes, as those of array and slices are.
  TupleLines(IndexTable table, size_t row, const LineWindow& window, int64_t elem_size, int64_t part_tuples);

  [[nodiscard]] int64_t line_count() const { return line_count_; }
  [[nodiscard]] int64_t elem_size() const { return elem_size_; }
  [[nodiscard]] int64_t slice_stride_bytes() const { return slice_stride_; }

  /// Calls visit(TupleLine) for lines first..last-1 with offsets as clamped_offsets() makes them.
  template <typename Visit>
  void visit_clamped(const std::byte* indices, int64_t first, int64_t last, Visit&& visit) const {
    walk(indices, first, last, visit,
         [&](const TupleRow& row, uint32_t* offsets) { clamped_offsets(table_, row, offsets); });
  }
  /// Same, as checked_offsets() makes them.
  template <typename Visit>
  void visit_checked(const std::byte* indices, const int64_t* shifts, int64_t first, int64_t last,
                     Visit&& visit) const {
    walk(indices, first, last, visit,
         [&](const TupleRow& row, uint32_t* offsets) { checked_offsets(table_, row, shifts, offsets); });
  }

 private:
  /// A loop around the tuples of a line. Strides in bytes.
  struct Loop {
    int64_t extent = 1;
    int64_t slice_stride = 0;
    int64_t array_stride = 0;
    int64_t index_stride = 0;
  };

  void add_loop(const Loop& loop);
  template <typename Visit, typename Read>
  void walk(const std::byte* indices, int64_t first, int64_t last, Visit&& visit, Read&& read) const;

  IndexTable table_;
  int64_t elem_size_ = 1;
  std::vector<Loop> loops_;   // of rows, of parts of a row, of elements of a window
  size_t part_loop_ = 0;      // the one of parts, where a row has several
  size_t tuple_loops_ = 0;    // so many of them, the outermost, change the tuples
  int64_t slice_stride_ = 0;  // bytes between elements of a line
  int64_t array_stride_ = 0;  // between the windows of two tuples with the same numbers
  int64_t index_stride_ = 0;  // between two tuples
  int64_t row_tuples_ = 1;
  int64_t part_tuples_ = 1;  // of a line; the last one of a row has fewer
  int64_t line_count_ = 1;
};

template <typename Visit, typename Read>
void TupleLines::walk(const std::byte* indices, int64_t first, int64_t last, Visit&& visit, Read&& read) const {
  std::array<int64_t, kMostLoops> at;
  std::array<uint32_t, kTuplesAtOnce> offsets;
  TupleLine line{.offsets = offsets.data(), .count = row_tuples_};
  int64_t rest = first;
  for (size_t l = loops_.size(); l-- > 0;) {
    const Loop& loop = loops_[l];
    at[l] = rest % loop.extent;
    rest /= loop.extent;
    line.array_at += at[l] * loop.array_stride;
    line.slice_at += at[l] * loop.slice_stride;
    indices += at[l] * loop.index_stride;
  }
  bool has_offsets = false;
  for (int64_t i = first; i < last; ++i) {
    if (!has_offsets) {
      if (row_tuples_ > part_tuples_) line.count = std::min(part_tuples_, row_tuples_ - at[part_loop_] * part_tuples_);
      read(TupleRow{indices, index_stride_, array_stride_, line.count}, offsets.data());
      has_offsets = true;
    }
    visit(line);
    for (size_t l = loops_.size(); l-- > 0;) {
      const Loop& loop = loops_[l];
      has_offsets = has_offsets && l >= tuple_loops_;
      line.array_at += loop.array_stride;
      line.slice_at += loop.slice_stride;
      indices += loop.index_stride;
      if (++at[l] < loop.extent) break;
      line.array_at -= loop.array_stride * loop.extent;
      line.slice_at -= loop.slice_stride * loop.extent;
      indices -= loop.index_stride * loop.extent;
      at[l] = 0;
    }
  }
}

}  // namespace meshd::kernels
