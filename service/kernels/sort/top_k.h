// The k first elements of lines and their indices, without sorting the lines. Elements are compared as the integers of
// sort_keys.h, so floats are in total order; of equal elements the earlier one is first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/core/checkpoint.h"
#include "service/kernels/sort/sort_keys.h"

namespace meshd::kernels {

/// `lines` lines of `length` contiguous elements, of which the first `k` <= length in order are selected.
struct TopKSpec {
  int64_t lines = 1;
  int64_t length = 0;
  int64_t k = 0;
  tensor::DType dtype = tensor::DType::kFloat32;
  bool largest = true;  ///< largest first; else smallest first
};

/// Immutable; any thread. Example: line [3, 1, 3, 2], k = 2, largest: values [3, 3], indices [0, 2].
class TopK {
 public:
  explicit TopK(const TopKSpec& spec);

  [[nodiscard]] int64_t work_count() const { return work_count_; }
  /// Work items begin..end-1: `values` (lines x k) and `indices` (lines x k) from `elements` (lines x length).
  void run(const std::byte* elements, std::byte* values, int32_t* indices, int64_t begin, int64_t end,
           core::Checkpoint* checkpoint = nullptr) const;

 private:
  template <typename T>
  void run_lines(const std::byte* elements, std::byte* values, int32_t* indices, int64_t begin, int64_t end,
                 core::Checkpoint* checkpoint) const;

  TopKSpec spec_;
  SortKey key_;
  int64_t lines_per_work_item_ = 1;
  int64_t work_count_ = 0;
};

}  // namespace meshd::kernels
