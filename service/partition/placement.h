// Where a value lies, in sub-axes, and what a sharding comes to in them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "service/partition/local_program.h"
#include "service/partition/views.h"

namespace meshd::partition {

/// Sub-axes for each dimension, major first, over a view.
struct Placed {
  int view = 0;
  std::vector<std::vector<int>> dims;
  friend bool operator==(const Placed&, const Placed&) = default;

  [[nodiscard]] sharding::SubAxisSet mask() const;
  /// Without the sub-axes in `drop`.
  [[nodiscard]] Placed without(sharding::SubAxisSet drop) const;
};

/// Nothing cut.
Placed whole(int64_t rank, int view = 0);
/// What a sharding comes to; parts of axes that do not fit the view's cuts are left out.
Placed place(const Views& views, const sharding::TensorSharding& sharding);
/// Local dims: ceil(n / parts) in each dimension.
tensor::Dims local_dims(const sharding::MeshView& view, std::span<const int64_t> logical_dims, const Placed& placed);
/// About how many elements a device lacks of its shard under `to` when it has its shard under `from`, for one with full
/// shards: exact for cuts that divide. Example: 8x16 from [{x=2}, {}] to [{}, {x}] -> 64 - 32.
double lacking_elements(const sharding::MeshView& view, std::span<const int64_t> logical_dims, const Placed& from,
                        const Placed& to);
/// Mask of a list of sub-axes.
sharding::SubAxisSet mask_of(std::span<const int> sub_axes);

}  // namespace meshd::partition
