// Gather of windows whose elements go to lines of the result: single elements, short rows, columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/kernels/movement/tuple_lines.h"

namespace meshd::kernels {

/// Immutable; any thread.
class GatherLines {
 public:
  /// Takes what Gather does. Nothing where lines are too short, or elements of a line are not side by side.
  static std::optional<GatherLines> make(const IndexTable& table, const tensor::Dims& window,
                                         const tensor::Dims& result_strides, const tensor::Dims& operand_strides,
                                         int64_t elem_size);

  [[nodiscard]] int64_t work_count() const { return work_count_; }
  void run(const std::byte* operand, const std::byte* indices, std::byte* result, int64_t begin, int64_t end) const;

 private:
  GatherLines(TupleLines lines, int64_t element_bytes, int64_t part_tuples);

  TupleLines lines_;
  int64_t element_bytes_;  // of the run of a window that is contiguous in both arrays
  int64_t lines_per_work_item_;
  int64_t work_count_;
};

}  // namespace meshd::kernels
