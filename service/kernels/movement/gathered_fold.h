// A reduction over gathered rows that reads the rows where they are: the gathered array is never made. Sizes and
// strides in elements.
//
// Example: the sum of 65,536 picks from a table of 20,000 rows of 64 f32: two work items of 32 lanes. Each takes the
// picks in their order, 8 at a time, and adds their lanes to 32 accumulators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/core/checkpoint.h"
#include "service/kernels/fold/fold_kernels.h"
#include "service/kernels/movement/index_table.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {

struct GatheredFoldCall {
  const std::byte* operand = nullptr;  ///< the rows are windows of it
  const std::byte* indices = nullptr;
  const std::byte* init = nullptr;  ///< one element
  std::byte* result = nullptr;
  int64_t begin = 0;  ///< range of work items
  int64_t end = 0;
  core::Checkpoint* checkpoint = nullptr;
};

/// Made ready. Immutable; any thread. Bits are those of FusedKernel over the gathered array, reduced along its rows,
/// where it has no parts.
class GatheredFold {
 public:
  /// `table`: index tuples, in the order in which their rows are combined. `lanes`: elements of a row, contiguous in
  /// the operand. Nothing where the reducer has no direct loop over elements of this type, or rows are so short that
  /// FusedKernel combines them in another order.
  static std::optional<GatheredFold> make(IndexTable table, int64_t lanes, const TileProgram& reducer,
                                          tensor::DType element);

  [[nodiscard]] int64_t work_count() const;
  void run(const GatheredFoldCall& call) const;

 private:
  GatheredFold(IndexTable table, int64_t lanes, const FoldKernels& fold, tensor::DType element);
  void run_lanes(const GatheredFoldCall& call, int64_t first, int64_t count) const;

  IndexTable table_;
  FoldKernels fold_;
  tensor::DType element_;
  int64_t elem_size_;
  int64_t lanes_;
  int64_t work_item_lanes_;
};

}  // namespace meshd::kernels
