// One dimension of a window, parts of it, and how many lanes are worked on side by side.
#pragma once

#include <cstdint>

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

}  // namespace meshd::kernels
