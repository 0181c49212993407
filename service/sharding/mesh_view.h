// A mesh cut into atoms: the finest axes that every sharding of a program is made of. With "x"=4 used as a whole and as "x":(1)2, the
// atoms are 2 and 2. Inside the engine a tensor's placement is a list of atoms for each dimension, and what a value depends on is
// a bit mask of atoms: cheap to combine, and the same for 4 devices and 4,096.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "service/core/checked_math.h"
#include "service/tensor/shape.h"

namespace meshd::sharding {

/// Bit i stands for atom i of a view.
using AtomMask = uint64_t;

/// Atoms in mesh order, major first; positions are row-major over them. Immutable once built.
struct MeshView {
  tensor::Dims atom_sizes;
  /// Place of each position in the flat device list of the request's mesh; empty: position i is entry i.
  std::vector<int64_t> flat_of_position;

  [[nodiscard]] int64_t position_count() const { return core::checked_product(atom_sizes); }
  [[nodiscard]] AtomMask all() const {
    return atom_sizes.size() >= 64 ? ~AtomMask{0} : (AtomMask{1} << atom_sizes.size()) - 1;
  }
  [[nodiscard]] int64_t flat(int64_t position) const {
    return flat_of_position.empty() ? position : flat_of_position[static_cast<size_t>(position)];
  }

  /// How many distinct shards a value has that varies over `mask`: the product of its atoms' sizes.
  [[nodiscard]] int64_t distinct_count(AtomMask mask) const {
    int64_t count = 1;
    for (size_t i = 0; i < atom_sizes.size(); ++i) {
      if (mask >> i & 1) count *= atom_sizes[i];
    }
    return count;
  }

  /// Coordinates (one for each atom, 0 outside of `mask`) of distinct shard `index`: row-major over the atoms of the mask.
  [[nodiscard]] tensor::Dims coordinates(AtomMask mask, int64_t index) const {
    tensor::Dims out(atom_sizes.size(), 0);
    for (size_t i = atom_sizes.size(); i-- > 0;) {
      if (mask >> i & 1) {
        out[i] = index % atom_sizes[i];
        index /= atom_sizes[i];
      }
    }
    return out;
  }

  /// The distinct shard of a value varying over `mask` that the position with these coordinates holds.
  [[nodiscard]] int64_t distinct_index(AtomMask mask, std::span<const int64_t> coords) const {
    int64_t index = 0;
    for (size_t i = 0; i < atom_sizes.size(); ++i) {
      if (mask >> i & 1) index = index * atom_sizes[i] + coords[i];
    }
    return index;
  }

  /// Shard index under `to` of what has `index` under `from`; atoms of `to` outside of `from` count as coordinate 0.
  [[nodiscard]] int64_t project(AtomMask from, int64_t index, AtomMask to) const {
    return from == to ? index : distinct_index(to, coordinates(from, index));
  }
};

/// Which part of a dimension cut by `atoms` (major first) the position with these coordinates holds.
inline int64_t part_index(const MeshView& view, std::span<const int> atoms, std::span<const int64_t> coords) {
  int64_t index = 0;
  for (const int atom : atoms) index = index * view.atom_sizes[static_cast<size_t>(atom)] + coords[static_cast<size_t>(atom)];
  return index;
}

/// Into how many parts the atoms cut.
inline int64_t part_count(const MeshView& view, std::span<const int> atoms) {
  int64_t count = 1;
  for (const int atom : atoms) count *= view.atom_sizes[static_cast<size_t>(atom)];
  return count;
}

}  // namespace meshd::sharding
