// select_and_scatter: each window of the operand chooses an element, to whose place the source's element of that window
// is scattered. What gradients of pooling are made of.
#pragma once

#include <memory>
#include <vector>

#include "service/kernels/monoid.h"
#include "service/kernels/tile_program.h"
#include "service/kernels/window.h"

namespace meshd::kernels {

struct SelectAndScatterCall {
  const std::byte* operand = nullptr;
  const std::byte* source = nullptr;
  const std::byte* init = nullptr;
  std::byte* result = nullptr;
  int64_t begin = 0;  ///< range of units
  int64_t end = 0;
  std::byte* scratch = nullptr;  ///< scratch_bytes() of this call alone, aligned to 64
};

/// Immutable; run() may be called by several threads on disjoint ranges. A window keeps the element that came first, in
/// row-major order, unless select(kept, next) is false; elements meet a place in the order of the windows' offsets.
class SelectAndScatter {
 public:
  /// `select` takes two elements and gives a boolean; `scatter` combines what comes to one place. One entry of `dims`
  /// for each dimension.
  SelectAndScatter(TileProgram select, std::shared_ptr<const Monoid> scatter, tensor::DType dtype,
                   const std::vector<WindowDim>& dims);

  [[nodiscard]] int64_t unit_count() const { return unit_count_; }
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] double flops() const { return flops_; }
  void run(const SelectAndScatterCall& call) const;

 private:
  class Unit;

  TileProgram select_;
  TileLayout layout_;
  std::shared_ptr<const Monoid> scatter_;
  int64_t elem_ = 4;
  int64_t lead_ = 1;
  int64_t inner_ = 1;
  std::vector<WindowDim> dims_;  ///< from the first to the last with windows
  std::vector<int64_t> window_sizes_;
  std::vector<int64_t> counts_;  ///< windows along each
  int64_t row_count_ = 1;        ///< places of the operand in these dimensions
  int64_t window_count_ = 1;
  int64_t offset_count_ = 1;  ///< elements of a window
  int64_t lead_block_ = 1;
  int64_t inner_block_ = 1;
  int64_t unit_count_ = 0;
  int64_t lanes_ = 1;  ///< of a block, rounded up
  int64_t scratch_bytes_ = 0;
  double flops_ = 0;
  bool is_apart_ = true;    ///< no two windows share a place: at most one element comes to each
  bool covers_all_ = true;  ///< each place is in a window
};

}  // namespace meshd::kernels
