// Offsets of the windows of a gather or scatter: converts index tuples of any integer type to element offsets, a run of
// tuples at a time, one pass for each component. Sizes, strides and offsets in elements.
//
// Example: operand 10x16, indices 8x2 (row-major, tuple last), components {dim 0, dim 1}: batch (8), batch_strides (2),
// component_stride 1, components {{last_start 9, stride 16}, {last_start 15, stride 1}}; the tuple (3, 5) gives
// offset 53.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "service/tensor/shape.h"

namespace meshd::kernels {

/// One number of an index tuple.
struct IndexComponent {
  int64_t last_start = 0;  ///< largest start whose window is in bounds: dimension - window
  int64_t stride = 1;      ///< of its dimension in the operand
};

/// Immutable once built; any thread.
struct IndexTable {
  tensor::DType dtype = tensor::DType::kInt32;
  tensor::Dims batch;            ///< dims of the indices without the tuple's own
  tensor::Dims batch_strides;    ///< of those in the indices array
  tensor::Dims operand_strides;  ///< of those in the operand: batching dims; 0 for others
  tensor::Dims slice_strides;    ///< of those in the gathered result, or in the updates
  int64_t component_stride = 1;  ///< between the numbers of one tuple
  std::vector<IndexComponent> components;

  [[nodiscard]] int64_t count() const { return tensor::element_count(batch); }
  /// Makes one of neighbouring batch dims that all arrays walk through alike. Tuples in one row are read without
  /// looking for each.
  void merge_batch();
};

/// Tuples that callers read at once: offsets of a run stay in the first level cache.
inline constexpr int64_t kTuplesAtOnce = 512;

/// Offsets of one run of tuples. One thread; keeps its memory between runs.
struct IndexRun {
  std::vector<int64_t> positions;  ///< of the tuple's first number in the indices, where tuples are in no row
  std::vector<int64_t> operand;    ///< of the window in the operand; negative: out of bounds, to be skipped
  std::vector<int64_t> slice;      ///< of the window in the gathered result, or in the updates

  /// Tuples first..first+count-1, starts clamped so that windows are in bounds (gather).
  void read_clamped(const IndexTable& table, const std::byte* indices, int64_t first, int64_t count);
  /// Same, but windows out of bounds are marked (scatter). `shifts` are subtracted from the numbers first: where a
  /// shard of the operand begins; null for zeros.
  void read_checked(const IndexTable& table, const std::byte* indices, int64_t first, int64_t count,
                    const int64_t* shifts);

 private:
  void place(const IndexTable& table, int64_t first, int64_t count);
  template <typename Visit>
  void visit_component(const IndexTable& table, const std::byte* indices, size_t component, Visit&& visit) const;

  bool is_row_ = false;  ///< positions are row_start_ + i * row_stride_, and not written down
  int64_t row_start_ = 0;
  int64_t row_stride_ = 0;
};

}  // namespace meshd::kernels
