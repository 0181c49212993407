// The type of a sharded value: its local type, its global dims, and which devices share a shard. Values of the local
// program, of the plan builder and of the plan all have one. Pure; plain data.
//
// Invariants:
//   - local.dims[d] == ceil(logical_dims[d] / parts(d)), in every shard. Rows beyond the logical size are padding:
//     garbage until an op masks it.
//   - `varies` contains the sub-axes of `layout`. What it contains beyond them, outer(), are manual axes around the
//     value or axes over which it is a partial result.
//   - The value has distinct_count() distinct shards; devices that differ only in other sub-axes share one.
//
// Example, mesh x=4, y=2 (sub-axis 0 is x, 1 is y):
//   f32 8x6 under [{"x"}, {}]           local 2x6, layout [[0], []], varies {0}: 4 distinct shards
//   partial results of f32 8x32 under   local 8x8, layout [[], [0]], varies {0, 1}, outer {1}: 8 distinct shards;
//   [{}, {"x"}], to be summed over y    behind the all-reduce over y it varies over {0}: 4
//   f32 5x6 under [{"x"}, {}]           local 2x6, even_dims 8x6; x=2 holds row 4 and one row of padding: rows [4, 5)
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "service/partition/shard_layout.h"
#include "service/sharding/layout.h"
#include "service/tensor/shape.h"

namespace meshd::partition {

/// `view` in every method is the MeshView of layout.view.
struct ShardedType {
  tensor::TensorType local;   ///< of one shard, padding included
  tensor::Dims logical_dims;  ///< of what it is a shard of (inside a manual computation: of the manual shard)
  ShardLayout layout;
  sharding::SubAxisSet varies = 0;  ///< sub-axes that the value depends on

  /// The type of a value of type `logical` in `layout`, which varies over `outer` too.
  static ShardedType of(const sharding::MeshView& view, const tensor::TensorType& logical, ShardLayout layout,
                        sharding::SubAxisSet outer = 0) {
    ShardedType out;
    out.local = {logical.dtype, local_dims(view, logical.dims, layout)};
    out.logical_dims = logical.dims;
    out.varies = layout.mask() | outer;
    out.layout = std::move(layout);
    return out;
  }

  [[nodiscard]] size_t rank() const { return logical_dims.size(); }
  [[nodiscard]] tensor::TensorType logical() const { return {local.dtype, logical_dims}; }
  /// The sub-axes of a dimension, major first.
  [[nodiscard]] const std::vector<int>& sub_axes(size_t dim) const { return layout.dims[dim]; }
  /// Varying sub-axes that do not shard a dimension.
  [[nodiscard]] sharding::SubAxisSet outer() const { return varies & ~layout.mask(); }
  /// Into how many parts a dimension is sharded.
  [[nodiscard]] int64_t parts(const sharding::MeshView& view, size_t dim) const {
    return sharding::part_count(view, layout.dims[dim]);
  }
  [[nodiscard]] int64_t distinct_count(const sharding::MeshView& view) const { return view.distinct_count(varies); }
  /// A dimension with its padding: parts times rows of a part.
  [[nodiscard]] int64_t even_size(const sharding::MeshView& view, size_t dim) const {
    return local.dims[dim] * parts(view, dim);
  }
  [[nodiscard]] tensor::Dims even_dims(const sharding::MeshView& view) const {
    tensor::Dims out(rank());
    for (size_t d = 0; d < out.size(); ++d) out[d] = even_size(view, d);
    return out;
  }
  /// Some shard holds padding: even_dims differ from logical_dims.
  [[nodiscard]] bool is_padded(const sharding::MeshView& view) const { return even_dims(view) != logical_dims; }
  /// The global row at which the shard of the device with these coordinates begins, padding counted.
  [[nodiscard]] int64_t start(const sharding::MeshView& view, size_t dim, std::span<const int64_t> coords) const {
    return sharding::part_index(view, layout.dims[dim], coords) * local.dims[dim];
  }
  /// The global rows that it holds; none where its shard is padding alone.
  [[nodiscard]] sharding::IndexRange rows(const sharding::MeshView& view, size_t dim,
                                          std::span<const int64_t> coords) const {
    const int64_t first = start(view, dim, coords);
    return {std::min(first, logical_dims[dim]), std::min(first + local.dims[dim], logical_dims[dim])};
  }
  /// The dims of the block that distinct shard `shard` holds: local's, less at uneven ends (0: padding alone).
  [[nodiscard]] tensor::Dims shard_dims(const sharding::MeshView& view, int64_t shard) const {
    const tensor::Dims coords = view.coordinates(varies, shard);
    tensor::Dims out;
    for (size_t d = 0; d < rank(); ++d) {
      const auto [start, stop] = rows(view, d, coords);
      out.push_back(stop - start);
    }
    return out;
  }
};

}  // namespace meshd::partition
