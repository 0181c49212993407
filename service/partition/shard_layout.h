// Where a value lies, in sub-axes, and what a sharding comes to in them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "service/partition/local_program.h"
#include "service/partition/views.h"

namespace meshd::partition {

/// Sub-axes for each dimension, major first, over a view.
struct ShardLayout {
  int view = 0;
  std::vector<std::vector<int>> dims;
  friend bool operator==(const ShardLayout&, const ShardLayout&) = default;

  [[nodiscard]] sharding::SubAxisSet mask() const;
  /// Without the sub-axes in `drop`.
  [[nodiscard]] ShardLayout without(sharding::SubAxisSet drop) const;
};

/// Nothing cut.
ShardLayout replicated(int64_t rank, int view = 0);
/// What a sharding comes to; parts of axes that do not fit the view's cuts are left out.
ShardLayout resolve_layout(const Views& views, const sharding::TensorSharding& sharding);
/// Local dims: ceil(n / parts) in each dimension.
tensor::Dims local_dims(const sharding::MeshView& view, std::span<const int64_t> logical_dims,
                        const ShardLayout& layout);
/// About how many elements a device lacks of its shard under `to` when it has its shard under `from`, for one with full
/// shards: exact for cuts that divide. Example: 8x16 from [{x=2}, {}] to [{}, {x}] -> 64 - 32.
double lacking_elements(const sharding::MeshView& view, std::span<const int64_t> logical_dims, const ShardLayout& from,
                        const ShardLayout& to);
/// Mask of a list of sub-axes.
sharding::SubAxisSet mask_of(std::span<const int> sub_axes);

}  // namespace meshd::partition
