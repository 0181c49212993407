// The devices-to-indices map of a sharding (jax.sharding.devices_indices_map): which indices of a global array each
// device holds. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "service/sharding/tensor_sharding.h"
#include "service/tensor/shape.h"

namespace meshd::sharding {

/// Half-open range of one dimension.
struct IndexRange {
  int64_t start = 0;
  int64_t stop = 0;
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// What one position of the mesh holds.
struct DeviceShard {
  int64_t position = 0;           ///< row-major place in the mesh
  int64_t device = 0;             ///< device id
  std::vector<IndexRange> index;  ///< a range for each dimension; short or empty at the end of an uneven dimension
  int64_t replica_id = 0;         ///< running count of devices with the same shard, in mesh order (G7)
  int64_t shard = 0;              ///< which distinct shard, row-major over the parts of the dimensions
};

/// The index map of a global shape. Example: mesh x=4, y=2, shape (8,2), spec (x,y): position 7 -> [6:8, 1:2], shard 7.
struct Layout {
  tensor::Dims global_dims;
  tensor::Dims part_counts;                ///< parts of each dimension
  tensor::Dims shard_dims;                 ///< ceil(size / parts): the size of a full shard (local shape)
  std::vector<DeviceShard> device_shards;  ///< one for each position of the mesh, or of the requested range
  int64_t shard_count = 1;                 ///< distinct shards: product of part_counts

  /// Index ranges of a distinct shard.
  [[nodiscard]] std::vector<IndexRange> shard_index(int64_t shard) const;
  /// Its actual dims: shard_dims clipped at the end of uneven dimensions.
  [[nodiscard]] tensor::Dims shard_actual_dims(int64_t shard) const;
};

/// Positions of a mesh from `first` on, `count` of them or as many as there are.
struct PositionRange {
  int64_t first = 0;
  int64_t count = INT64_MAX;
};

/// The layout of `global_dims` under `sharding` (verified), with the shards of some positions. In a dimension of
/// several axes the first is the major one (G5). Throws empty_mesh when the mesh has no positions.
Layout make_layout(std::span<const int64_t> global_dims, const TensorSharding& sharding, PositionRange range = {});

/// One dense block to copy from one distinct shard of a layout to one of another. Offsets are within the shards.
struct BlockCopy {
  int64_t from_shard = 0;
  int64_t to_shard = 0;
  tensor::Dims from_start;
  tensor::Dims to_start;
  tensor::Dims extent;
};

/// All block copies that reshard an array from layout `from` to layout `to`; minimal: each element of the target once.
std::vector<BlockCopy> reshard_copies(const Layout& from, const Layout& to);

}  // namespace meshd::sharding
