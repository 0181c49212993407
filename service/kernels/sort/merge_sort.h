// A stable sort of indices by a comparator that is a tile program: for comparators that are no order of integers. It
// does not trust the comparator: one that contradicts itself gives some permutation, never an access out of bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

/// Compares elements of lines by a program that takes (lhs, rhs) of each line. One thread.
class LineComparator {
 public:
  LineComparator(const TileProgram& program, std::span<const int64_t> elem_sizes)
      : program_(program), elem_sizes_(elem_sizes), scratch_(program, 1) {}

  /// The lines to compare: contiguous elements of each operand.
  void set_lines(const std::byte* const* lines) { lines_ = lines; }
  void set_checkpoint(core::Checkpoint* checkpoint) { checkpoint_ = checkpoint; }
  /// True when element `a` comes before element `b`.
  bool before(int64_t a, int64_t b);

 private:
  const TileProgram& program_;
  std::span<const int64_t> elem_sizes_;
  TileScratch scratch_;
  const std::byte* const* lines_ = nullptr;
  core::Checkpoint* checkpoint_ = nullptr;
  int64_t comparisons_ = 0;
};

/// order[i] = which of `count` elements comes i-th. `spare` is as long as `order`.
void merge_sort(LineComparator& comparator, std::span<int64_t> order, std::span<int64_t> spare);

}  // namespace meshd::kernels
