// Batching of rows (OpDef::batch): an op over a leading batch dimension, as jax.vmap rewrites a function. Used by
// service/program/batching, which calls the rules op by op and handles what is pointwise or has regions that are
// control flow. Batched values have the batch dimension in front; the others are the same for every entry of the batch.
//
// Example: reduce over dimensions [0] of x: tensor<3x4xf32>, batch of 8. The operand is tensor<8x3x4xf32>; the rule
// writes a reduce over dimensions [1] and returns a tensor<8x4xf32>.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "service/ops/op_def.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::ops {

/// An op of which at least one operand is batched. `view` and `op` are those of one entry of the batch.
struct Batching {
  OpView view;
  const ir::Op& op;
  std::vector<ir::ValueId> operands;  ///< with the batch dimension in front where is_batched says so
  std::vector<bool> is_batched;
  int64_t size = 0;
  Writer& writer;

  /// An operand with the batch dimension: repeated where it has none.
  [[nodiscard]] ir::ValueId batched(size_t operand) const;
  [[nodiscard]] std::vector<ir::ValueId> all_batched() const;
  /// Whether any operand from number `first` on is batched.
  [[nodiscard]] bool any_batched(size_t first) const;
  /// The type of a batch of such values.
  [[nodiscard]] ir::Type batch_of(const ir::Type& type) const;
  /// The op on these operands with other attributes, its own regions and batches of its results.
  [[nodiscard]] std::vector<ir::ValueId> rewritten(std::vector<ir::ValueId> batched_operands,
                                                   ir::AttributeList attributes) const;
  /// The op's attributes without those of these names.
  [[nodiscard]] ir::AttributeList attributes_without(std::initializer_list<std::string_view> names) const;
};

/// Results of all the op's results, batched; nothing where it cannot be written so.
using Batched = std::optional<std::vector<ir::ValueId>>;

/// Numbers of dimensions with one more in front: each 1 larger.
std::vector<int64_t> shifted(std::vector<int64_t> dims);
/// A list by dimension, with an entry for one more in front.
std::vector<int64_t> with_front(int64_t front, std::vector<int64_t> by_dimension);

/// A value that is the same for every entry of a batch of `size`, with the batch dimension in front.
ir::ValueId repeated_over_batch(Writer& writer, ir::ValueId id, int64_t size);

/// OpDef::batch of ops whose leading dimensions are batch dimensions already (cholesky, fft): all operands batched.
Batched batch_leading(const Batching& b);
/// Of pointwise ops; scalars beside operands of a shape (the bounds of clamp) are broadcast.
Batched batch_pointwise(const Batching& b);

}  // namespace meshd::ops
