// select_and_scatter: each window of the operand chooses an element, to whose place the source's element of that window
// is scattered. What gradients of pooling are made of.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "service/core/checkpoint.h"
#include "service/kernels/fold/monoid.h"
#include "service/kernels/tile/tile_program.h"
#include "service/kernels/window/select_apart.h"
#include "service/kernels/window/window.h"

namespace meshd::kernels {

/// One dimension. A call may compute one part of it, `part_rows` rows from the call's offset on: operand and source
/// then have the rows of the windows that overlap the part. Parts of a multiple of the stride have their windows at the
/// same places: the source has a row for each. For other parts it has a row for each place at which a window may begin;
/// only those where one does are read. Rows outside of the operand are not read.
struct SelectDim {
  WindowDim windows;  ///< of the global dimension; nothing is dilated
  std::optional<int64_t> part_rows;

  /// Places from one row of the source to the next.
  [[nodiscard]] int64_t source_step() const;
  /// Where the first window begins, relative to the first row of the dimension or of the part.
  [[nodiscard]] int64_t first_place() const;
  [[nodiscard]] int64_t source_rows() const;
  [[nodiscard]] int64_t operand_rows() const;
  [[nodiscard]] int64_t result_rows() const { return part_rows.value_or(windows.size); }
  /// Row of the dimension or of the part where the operand's rows begin.
  [[nodiscard]] int64_t operand_begin() const { return part_rows ? first_place() : 0; }
};

struct SelectAndScatterCall {
  const std::byte* operand = nullptr;
  const std::byte* source = nullptr;
  const std::byte* init = nullptr;
  std::byte* result = nullptr;
  const int64_t* offsets = nullptr;  ///< by dimension, the global index of the result's first row; null: zeros
  int64_t begin = 0;                 ///< range of work items
  int64_t end = 0;
  std::byte* scratch = nullptr;  ///< scratch_bytes() of this call alone, aligned to 64
  core::Checkpoint* checkpoint = nullptr;
};

/// Immutable; run() may be called by several threads on disjoint ranges. A window keeps the element that came first, in
/// row-major order, unless select(kept, next) is false; elements are combined at a place in the order of the windows'
/// offsets.
class SelectAndScatter {
 public:
  /// `select` takes two elements and returns a boolean; `scatter` combines the values of one place. One entry of `dims`
  /// for each dimension.
  SelectAndScatter(TileProgram select, std::shared_ptr<const Monoid> scatter, tensor::DType dtype,
                   const std::vector<SelectDim>& dims);

  [[nodiscard]] int64_t work_count() const { return work_count_; }
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] double flops() const { return flops_; }
  /// Some dimension is computed in parts: offsets are used.
  [[nodiscard]] bool is_part() const { return is_part_; }
  void run(const SelectAndScatterCall& call) const;

 private:
  class WorkItem;

  TileProgram select_;
  SelectApart select_apart_ = nullptr;  ///< where it takes part: windows share no place, see run_apart
  TileLayout layout_;
  std::shared_ptr<const Monoid> scatter_;
  int64_t elem_ = 4;
  int64_t lead_ = 1;
  int64_t inner_ = 1;
  size_t first_dim_ = 0;
  std::vector<SelectDim> dims_;  ///< from the first to the last with windows
  std::vector<int64_t> window_sizes_;
  int64_t operand_rows_ = 1;  ///< in these dimensions
  int64_t source_rows_ = 1;
  int64_t result_rows_ = 1;
  int64_t offset_count_ = 1;  ///< elements of a window
  WindowLanes block_;         ///< of a work item
  int64_t work_count_ = 0;
  int64_t lanes_ = 1;  ///< of a block, rounded up
  int64_t scratch_bytes_ = 0;
  double flops_ = 0;
  bool is_apart_ = true;    ///< no two windows share a place: at most one element for each
  bool covers_all_ = true;  ///< each place is in a window
  bool is_part_ = false;
};

}  // namespace meshd::kernels
