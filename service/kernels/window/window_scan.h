// Prefix scan along a dimension (cumsum, cumprod): each row is combined with all before it. Rows are processed in tiles
// that fit the cache; where there are few lanes, segments of rows are scanned in parallel and the carry of each segment
// is added afterwards, so that vectors are full.
#pragma once

#include <cstdint>

#include "service/kernels/fold/monoid.h"

namespace meshd::kernels {

/// Row r of lane (l, i) is element r * row_stride + l * lead_stride + i, of inputs and results alike.
struct WindowScan {
  int64_t rows = 0;
  int64_t row_stride = 1;
  int64_t lead_count = 1;
  int64_t lead_stride = 0;
  int64_t inner_count = 1;
  bool is_backwards = false;  ///< from the last row to the first; elements are still combined in order

  /// Bytes of scratch that run() needs for so many lanes (lead_count * inner_count).
  static int64_t scratch_bytes(const Monoid& monoid, int64_t lanes);
  void run(const Monoid& monoid, Monoid::Worker& worker, const ConstRows& inputs, const ConstRows& init,
           const Rows& results, std::byte* scratch) const;
};

}  // namespace meshd::kernels
