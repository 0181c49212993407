// The windows of one dimension, and the pass that combines them: rows of lanes in, a row for each window out. Windows
// over several dimensions are one pass after another, from the last dimension to the first, so that elements are
// combined in row-major order.
#pragma once

#include <cstdint>
#include <vector>

#include "service/kernels/fold/monoid.h"

namespace meshd::kernels {

/// One dimension of a window, as StableHLO has it. Example: size 5, window 2, base_dilation 2, padding 1 and 0: places
/// . a . b . c . d . e (a dot is padding or a hole), windows (.a)(a.)(.b)...
struct WindowDim {
  int64_t size = 0;
  int64_t window = 1;
  int64_t stride = 1;
  int64_t window_dilation = 1;
  int64_t base_dilation = 1;
  int64_t pad_low = 0;  ///< negative: elements are cropped
  int64_t pad_high = 0;

  /// Number of windows.
  [[nodiscard]] int64_t output_size() const;
  /// Places from the first to behind the last of one window.
  [[nodiscard]] int64_t span() const { return (window - 1) * window_dilation + 1; }
  /// Every window is one element, all in order: there is nothing to do.
  [[nodiscard]] bool is_trivial() const;
  /// Row at place `at` (counted from the first row), or -1 for padding and holes.
  [[nodiscard]] int64_t row_at(int64_t at) const {
    if (at < 0 || at % base_dilation != 0) return -1;
    const int64_t row = at / base_dilation;
    return row < size ? row : -1;
  }
};

/// The part of a dimension that windows [first, first + count) read.
struct WindowPart {
  WindowDim dim;    ///< size is that of the rows here; padding is relative to them
  int64_t row = 0;  ///< first row of the dimension that the part has
  int64_t first = 0;
  int64_t count = 0;
};
WindowPart part_of(const WindowDim& dim, int64_t first, int64_t count);

/// Lanes that a work item takes side by side: `inner` of those behind the dimensions with windows, where they fill
/// vectors, else all of them for `lead` indices of the dimensions before the windows.
struct WindowLanes {
  static constexpr int64_t kMost = 256;
  static constexpr int64_t kFew = 128;  ///< required where they must come from the dimensions before the windows
  int64_t lead = 1;
  int64_t inner = 1;

  /// Of arrays with `all_lead` such indices and `all_inner` lanes behind, at least one of each.
  static WindowLanes of(int64_t all_lead, int64_t all_inner);
  [[nodiscard]] int64_t count() const { return lead * inner; }
};

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
