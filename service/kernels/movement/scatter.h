// Scatter: combines windows of updates into an array at index tuples, in the order of the updates. A window that is
// partly out of bounds is skipped. Sizes and strides in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/fused/tile_program.h"
#include "service/kernels/movement/index_table.h"

namespace meshd::kernels {

/// A scatter made ready, of one or several arrays of one shape with one body. Immutable; any thread, but a run is one
/// thread's work, since order counts where windows overlap.
class Scatter {
 public:
  /// `body` takes the arrays' elements, then those of the updates, and gives the arrays' new ones. `window` has the
  /// sizes of one window's dims; its strides in the updates and in the arrays go with them.
  Scatter(IndexTable table, tensor::Dims window, tensor::Dims update_strides, tensor::Dims array_strides,
          TileProgram body);

  /// Updates the arrays in place. `shifts` as IndexRun::read_checked takes them.
  void run(std::byte* const* arrays, const std::byte* indices, const std::byte* const* updates, const int64_t* shifts,
           core::Checkpoint* checkpoint = nullptr) const;

 private:
  enum class Apply : uint8_t { kReplace, kAddOne, kBinary, kProgram };
  struct Rows;

  void scatter_single(const IndexRun& run, std::byte* array, const std::byte* update) const;

  IndexTable table_;
  TileProgram body_;
  Apply apply_ = Apply::kProgram;
  ScalarKernel binary_ = nullptr;
  tensor::Dims outer_;  // loops of a window around its innermost run
  tensor::Dims outer_update_;
  tensor::Dims outer_array_;
  int64_t run_length_ = 1;  // elements that are contiguous in updates and arrays
  std::vector<int64_t> elem_sizes_;
  int64_t lanes_ = 64;
  bool is_empty_ = false;
};

}  // namespace meshd::kernels
