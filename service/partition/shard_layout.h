// The layout of a value's shards (XLA's HloSharding, Shardy's TensorSharding) in sub-axes. Pure.
//
// Invariant: a sub-axis shards at most one dimension of a layout.
//
// Example, mesh x=4, y=2, and some sharding of the program uses "x":(1)2. The view has sub-axes 0 = "x":(1)2,
// 1 = "x":(2)2, 2 = y, all of size 2 (views.h).
//   [{"x"}, {"y"}]   -> dims [[0, 1], [2]];  8x6 has local dims 2x3
//   [{"x":(1)2}, {}] -> dims [[0], []];      8x6 has local dims 4x6
//   [{"x"}, {}] of 5x6 -> local dims 2x6: rows 0-1, 2-3, 4 and none, the rest is padding
#pragma once

#include <span>
#include <vector>

#include "service/sharding/mesh_view.h"

namespace meshd::partition {

/// Sub-axes for each dimension, major first, over a view. Shardy's TensorSharding with axes resolved to sub-axes.
struct ShardLayout {
  int view = 0;  ///< number of the MeshView
  std::vector<std::vector<int>> dims;
  friend bool operator==(const ShardLayout&, const ShardLayout&) = default;

  /// The sub-axes that shard a dimension.
  [[nodiscard]] sharding::SubAxisSet mask() const;
  /// Without the sub-axes in `drop`.
  [[nodiscard]] ShardLayout without(sharding::SubAxisSet drop) const;
};

/// The layout without sub-axes.
ShardLayout replicated(int64_t rank, int view = 0);
/// Local dims: ceil(n / parts) in each dimension.
tensor::Dims local_dims(const sharding::MeshView& view, std::span<const int64_t> logical_dims,
                        const ShardLayout& layout);
/// Estimate of the elements that a device with full shards lacks of its shard under `to` when it has its shard under
/// `from`; exact where the parts divide. Example: 8x16 from [{x=2}, {}] to [{}, {x}] -> 64 - 32.
double lacking_elements(const sharding::MeshView& view, std::span<const int64_t> logical_dims, const ShardLayout& from,
                        const ShardLayout& to);
/// Mask of a list of sub-axes, and the sub-axes of a mask in ascending order: [2, 0] -> 0b101 -> [0, 2].
sharding::SubAxisSet mask_of(std::span<const int> sub_axes);
std::vector<int> list_of(sharding::SubAxisSet mask);

}  // namespace meshd::partition
