// Gather: copies the windows of an array that index tuples select. Sizes and strides in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/kernels/movement/gather_lines.h"
#include "service/kernels/movement/index_table.h"
#include "service/kernels/movement/movement.h"

namespace meshd::kernels {

/// A gather made ready. Immutable; any thread.
class Gather {
 public:
  /// `window` has the sizes of one window's dims; its strides in the result and in the operand go with them.
  Gather(IndexTable table, const tensor::Dims& window, const tensor::Dims& result_strides,
         const tensor::Dims& operand_strides, int64_t elem_size);

  /// Number of work items of the result.
  [[nodiscard]] int64_t work_count() const { return work_count_; }
  void run(const std::byte* operand, const std::byte* indices, std::byte* result, int64_t begin, int64_t end) const;

 private:
  void copy_windows(const IndexRun& run, const std::byte* operand, std::byte* result) const;

  IndexTable table_;
  std::optional<GatherLines> lines_;  // where windows go to lines of the result, and are not copied one by one
  StridedCopy window_;
  int64_t elem_size_;
  int64_t run_bytes_ = 0;  // of a window that is contiguous in both arrays; 0: it is not
  int64_t tuple_count_;
  int64_t tuples_per_work_item_ = 1;
  int64_t work_items_per_window_ = 1;  // of a window so large that it is split itself
  int64_t work_count_ = 0;
};

}  // namespace meshd::kernels
