// The pass that combines the windows of one dimension: rows of lanes in, a row for each window out. Windows
// over several dimensions are one pass after another, from the last dimension to the first, so that elements are
// combined in row-major order.
#pragma once

#include <cstdint>
#include <vector>

#include "service/kernels/fold/monoid.h"
#include "service/kernels/window/window_dim.h"

namespace meshd::kernels {

/// Combines the windows of rows (rows, lanes) into (windows, lanes). Small windows are combined element by element;
/// large ones, whatever their length, by three combinations a row: sums from the begin and from the end of blocks as
/// long as a window are made once, and a window is the end of one block with the begin of the next. Immutable.
class WindowPass {
 public:
  /// `count` windows of `dim` from its first on.
  WindowPass(const WindowDim& dim, int64_t count);

  [[nodiscard]] bool is_blocked() const { return is_blocked_; }
  [[nodiscard]] int64_t row_count() const { return dim_.size; }
  [[nodiscard]] int64_t window_count() const { return count_; }
  /// Windows without any element; their rows hold zeros.
  [[nodiscard]] const std::vector<int64_t>& empty_windows() const { return empty_; }
  /// `outer` arrays of rows after one another. `rows` are overwritten where is_blocked(); `spare` has room for one
  /// array of rows or of windows, whichever is larger.
  void run(const Monoid& monoid, Monoid::Worker& worker, const Rows& rows, const Rows& windows, const Rows& spare,
           int64_t outer, int64_t lanes) const;

 private:
  /// Element `offset` of windows window, window + window_step, ...: rows row, row + row_step, ...
  struct Step {
    int64_t window = 0;
    int64_t window_step = 1;
    int64_t row = 0;
    int64_t row_step = 1;
    int64_t count = 0;
    bool is_first = false;
  };
  /// Windows next to each other that are the end of a block from `row`, the begin of a block to `last`, or both.
  struct Piece {
    int64_t window = 0;
    int64_t row = -1;   ///< -1: no end of a block
    int64_t last = -1;  ///< -1: no begin of a block
    int64_t count = 0;
  };

  /// plan_steps() where windows that have an element are contiguous; false where they are not.
  bool plan_ranges();
  void plan_steps();
  void plan_blocks();
  void run_steps(const Monoid& monoid, Monoid::Worker& worker, const Rows& rows, const Rows& windows, const Rows& spare,
                 int64_t lanes) const;
  void run_blocks(const Monoid& monoid, Monoid::Worker& worker, const Rows& rows, const Rows& windows,
                  const Rows& spare, int64_t lanes) const;

  WindowDim dim_;
  int64_t count_ = 0;
  bool is_blocked_ = false;
  int64_t block_ = 1;  ///< rows of a block, each dim_.window_dilation apart
  bool needs_begins_ = false;
  bool needs_ends_ = false;
  std::vector<Step> steps_;
  std::vector<Piece> pieces_;
  std::vector<int64_t> empty_;
};

}  // namespace meshd::kernels
