// Data movement: block copies between dense row-major arrays (what a reshard is made of) and copies with any strides
// (transpose, slice, reverse, pad, concatenate, broadcast). Sizes and starts are counted in elements; an element is
// `elem_size` opaque bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "service/kernels/movement/groups.h"
#include "service/tensor/shape.h"

namespace meshd::kernels {

/// Copies a block of `extent` elements from `src` (dense row-major, `src_dims`) at `src_start` to `dst` (`dst_dims`) at
/// `dst_start`. All five spans have the same length; the block must be inside both arrays; the arrays must not overlap.
/// Example: dst 4x6, src 2x6, dst_start (2,0), src_start (0,0), extent (2,6): rows 0..1 of src become rows 2..3 of dst,
/// one memcpy. Any thread. For a copy that is made often, keep a StridedCopy.
void copy_block(std::byte* dst, std::span<const int64_t> dst_dims, std::span<const int64_t> dst_start,
                const std::byte* src, std::span<const int64_t> src_dims, std::span<const int64_t> src_start,
                std::span<const int64_t> extent, int64_t elem_size);

/// dst[sum(dst_stride[d] * i[d])] = src[sum(src_stride[d] * i[d])] for every index i below `extent`, prepared once:
/// dims of size one dropped, neighbours merged, the inner loop chosen (memcpy, fill, each element some times, strided,
/// groups of few elements, 64-byte-line transpose). Immutable; any thread. Example: the transpose of 2x3: extent (3,2),
/// dst_strides (2,1), src_strides (1,3).
class StridedCopy {
 public:
  /// Strides in elements. Those of dst are positive and map distinct indices to distinct elements; those of src may be
  /// zero (broadcast) or negative (reverse; `src` of run() then points to the element of index zero).
  StridedCopy(std::span<const int64_t> extent, std::span<const int64_t> dst_strides,
              std::span<const int64_t> src_strides, int64_t elem_size);

  /// The copy consists of this many work items of about 256 KiB; 0 when there is nothing to copy.
  [[nodiscard]] int64_t work_count() const { return work_count_; }
  /// Bytes written by all work items.
  [[nodiscard]] int64_t byte_count() const { return byte_count_; }
  /// Copies work items begin..end-1. `dst` and `src` point to index zero; they must not overlap.
  void run(std::byte* dst, const std::byte* src, int64_t begin, int64_t end) const;
  /// Copies everything.
  void run(std::byte* dst, const std::byte* src) const { run(dst, src, 0, work_count_); }

 private:
  enum class Inner : uint8_t { kRun, kFill, kRepeat, kStrided, kGroups, kTranspose };

  void run_inner(std::byte* dst, const std::byte* src, int64_t chunk) const;

  int64_t elem_size_ = 1;
  // Outer loops, major first; byte strides.
  std::vector<int64_t> outer_extent_;
  std::vector<int64_t> outer_dst_;
  std::vector<int64_t> outer_src_;
  Inner inner_ = Inner::kRun;
  bool streaming_ = false;    // the output is larger than the last cache: stores bypass it
  int64_t inner_extent_ = 1;  // elements along dst's innermost loop
  int64_t inner_dst_ = 0;     // byte strides of that loop
  int64_t inner_src_ = 0;
  int64_t repeat_ = 1;        // kRepeat: copies of each element of the inner loop, side by side in dst
  int64_t cross_extent_ = 1;  // kTranspose: the loop that is contiguous in src
  int64_t cross_dst_ = 0;     // its byte stride in dst
  Groups groups_;             // kGroups: the inner loop is over groups; count is not set
  bool cuts_cross_ = false;   // kTranspose: the cross loop is cut into chunks, not the inner one
  int64_t chunk_ = 1;         // elements of the loop that is cut into chunks in one step
  int64_t chunk_count_ = 1;
  int64_t steps_per_work_item_ = 1;
  int64_t step_count_ = 0;
  int64_t work_count_ = 0;
  int64_t byte_count_ = 0;
};

/// A StridedCopy of some rows of its first dim, which has at least one, prepared for `block_rows` of them. Any thread.
class RowCopies {
 public:
  RowCopies(tensor::Dims extent, tensor::Dims dst_strides, tensor::Dims src_strides, int64_t elem_size,
            int64_t block_rows);
  [[nodiscard]] int64_t byte_count() const { return row_bytes_ * extent_[0]; }
  /// Copies rows begin..end-1. `dst` and `src` point to index zero.
  void run(std::byte* dst, const std::byte* src, int64_t begin, int64_t end) const;

 private:
  [[nodiscard]] StridedCopy of_rows(int64_t rows) const;

  tensor::Dims extent_;
  tensor::Dims dst_strides_;
  tensor::Dims src_strides_;
  int64_t elem_size_;
  int64_t row_bytes_;
  int64_t block_rows_;
  StridedCopy block_;
};

/// The elements of an array all set to one element. `dst` has `count` elements.
void fill_elements(std::byte* dst, const std::byte* element, int64_t count, int64_t elem_size);

}  // namespace meshd::kernels
