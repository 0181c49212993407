// Scatter of windows of single elements, short rows or columns: each line combines the updates of one run of elements
// of the windows, in the order of their tuples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "service/core/checkpoint.h"
#include "service/kernels/movement/element_update.h"
#include "service/kernels/movement/tuple_lines.h"

namespace meshd::kernels {

/// Immutable; any thread.
class ScatterLines {
 public:
  /// `window`: its dims around runs of `run` elements, which are contiguous in array and updates. Nothing where
  /// elements of two lines may be one element of the array (lines would combine them in another order than windows), or
  /// where `update` is null.
  static std::optional<ScatterLines> make(const IndexTable& table, const LineWindow& window, int64_t run,
                                          int64_t elem_size, ElementUpdate update);

  /// All updates. `shifts` as IndexRun::read_checked takes them.
  void run(std::byte* array, const std::byte* indices, const std::byte* updates, const int64_t* shifts,
           core::Checkpoint* checkpoint) const;

 private:
  ScatterLines(TupleLines lines, int64_t run, ElementUpdate update)
      : lines_(std::move(lines)), run_(run), update_(update) {}

  TupleLines lines_;
  int64_t run_;
  ElementUpdate update_;
};

}  // namespace meshd::kernels
