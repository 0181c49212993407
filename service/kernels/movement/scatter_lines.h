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

  /// What one execution reads and writes.
  struct Call {
    std::byte* array = nullptr;
    const std::byte* indices = nullptr;
    const std::byte* updates = nullptr;
    const int64_t* shifts = nullptr;  ///< as IndexRun::read_checked takes them
    core::Checkpoint* checkpoint = nullptr;
  };
  [[nodiscard]] int64_t line_count() const { return lines_.line_count(); }
  /// All updates, or those of lines first..last-1.
  void run(const Call& call) const { run(call, 0, line_count()); }
  void run(const Call& call, int64_t first, int64_t last) const;

 private:
  ScatterLines(TupleLines lines, int64_t run, ElementUpdate update)
      : lines_(std::move(lines)), run_(run), update_(update) {}

  TupleLines lines_;
  int64_t run_;
  ElementUpdate update_;
};

}  // namespace meshd::kernels
