// A mesh split into sub-axes: the finest axes that every sharding of a program is made of. With "x"=4 used in full and
// as "x":(1)2, the sub-axes are 2 and 2. Inside the engine a tensor's layout is a list of sub-axes for each dimension,
// and what a value depends on is a bit mask of sub-axes: cheap to combine, and the same for 4 devices and 4,096.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "service/core/checked_math.h"
#include "service/tensor/shape.h"

namespace meshd::sharding {

/// Bit i is sub-axis i of a view.
using SubAxisSet = uint64_t;

/// Sub-axes in mesh order, major first; positions are row-major over them. Immutable once built.
///
/// A view may be over some of a run's devices only. Values laid out over it are on these devices, and the others hold
/// nothing of them. Example: run of 5 devices, mesh x=2 with device_ids [4, 1]: flat_of_position [4, 1].
struct MeshView {
  tensor::Dims sub_axis_sizes;
  /// Place of each position in the flat device list of the run; empty: position i is entry i, and there are no others.
  std::vector<int64_t> flat_of_position;

  [[nodiscard]] int64_t position_count() const { return core::checked_product(sub_axis_sizes); }
  [[nodiscard]] SubAxisSet all() const {
    return sub_axis_sizes.size() >= 64 ? ~SubAxisSet{0} : (SubAxisSet{1} << sub_axis_sizes.size()) - 1;
  }
  [[nodiscard]] int64_t flat(int64_t position) const {
    return flat_of_position.empty() ? position : flat_of_position[static_cast<size_t>(position)];
  }
  /// The position of each of `device_count` entries of the flat device list: flat() read backwards; -1 for devices that
  /// the view does not reach.
  [[nodiscard]] std::vector<int64_t> position_of_flat(int64_t device_count) const {
    std::vector<int64_t> out(static_cast<size_t>(device_count), -1);
    for (int64_t p = 0; p < position_count(); ++p) out[static_cast<size_t>(flat(p))] = p;
    return out;
  }

  /// How many distinct shards a value has that varies over `mask`: the product of its sub-axes' sizes.
  [[nodiscard]] int64_t distinct_count(SubAxisSet mask) const {
    int64_t count = 1;
    for (size_t i = 0; i < sub_axis_sizes.size(); ++i) {
      if (mask >> i & 1) count *= sub_axis_sizes[i];
    }
    return count;
  }

  /// Coordinates (one for each sub-axis, 0 outside of `mask`) of distinct shard `index`: row-major over the sub-axes of
  /// the mask.
  [[nodiscard]] tensor::Dims coordinates(SubAxisSet mask, int64_t index) const {
    tensor::Dims out(sub_axis_sizes.size(), 0);
    for (size_t i = sub_axis_sizes.size(); i-- > 0;) {
      if (mask >> i & 1) {
        out[i] = index % sub_axis_sizes[i];
        index /= sub_axis_sizes[i];
      }
    }
    return out;
  }

  /// The distinct shard of a value varying over `mask` that the position with these coordinates holds.
  [[nodiscard]] int64_t distinct_index(SubAxisSet mask, std::span<const int64_t> coords) const {
    int64_t index = 0;
    for (size_t i = 0; i < sub_axis_sizes.size(); ++i) {
      if (mask >> i & 1) index = index * sub_axis_sizes[i] + coords[i];
    }
    return index;
  }

  /// Shard index under `to` of what has `index` under `from`; sub-axes of `to` outside of `from` count as coordinate 0.
  [[nodiscard]] int64_t project(SubAxisSet from, int64_t index, SubAxisSet to) const {
    return from == to ? index : distinct_index(to, coordinates(from, index));
  }
};

/// Which part of a dimension sharded by `sub_axes` (major first) the position with these coordinates holds.
inline int64_t part_index(const MeshView& view, std::span<const int> sub_axes, std::span<const int64_t> coords) {
  int64_t index = 0;
  for (const int sub_axis : sub_axes)
    index = index * view.sub_axis_sizes[static_cast<size_t>(sub_axis)] + coords[static_cast<size_t>(sub_axis)];
  return index;
}

/// Makes part_index() `part`: writes the coordinates of `sub_axes` (major first), and leaves the others.
inline void set_part(const MeshView& view, std::span<const int> sub_axes, int64_t part, tensor::Dims& coords) {
  for (size_t i = sub_axes.size(); i-- > 0;) {
    const auto sub_axis = static_cast<size_t>(sub_axes[i]);
    coords[sub_axis] = part % view.sub_axis_sizes[sub_axis];
    part /= view.sub_axis_sizes[sub_axis];
  }
}

/// Number of parts into which the sub-axes shard.
inline int64_t part_count(const MeshView& view, std::span<const int> sub_axes) {
  int64_t count = 1;
  for (const int sub_axis : sub_axes) count *= view.sub_axis_sizes[static_cast<size_t>(sub_axis)];
  return count;
}

}  // namespace meshd::sharding
