// The reduction behind a fused loop over no more lanes than one block: all values are in a register. Private to this
// folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "service/kernels/fold/fold_kernels.h"

namespace meshd::kernels {

/// Values (groups, items, lanes) become (groups, lanes). Immutable; any thread.
struct SmallReduce {
  ScalarOp op = ScalarOp::kAdd;
  tensor::DType dtype = tensor::DType::kFloat32;
  FoldKernels fold;
  int64_t groups = 1;
  int64_t items = 1;
  int64_t lanes = 1;

  [[nodiscard]] int64_t results() const { return groups * lanes; }
  /// Bits are those of ReduceRun: the same folds, in the same order.
  void run(const std::byte* values, const std::byte* init, std::byte* results) const;
  /// Whether each result is folded from left to right.
  [[nodiscard]] bool is_in_order() const;
  /// Of float32, folded in order: which of two NaNs the fold of an item gives, by item whether it is the item's; for
  /// item 0 whether it is that of all items, and not the init's. Nothing where results differ in that.
  [[nodiscard]] std::optional<std::vector<bool>> find_order() const;
};

}  // namespace meshd::kernels
