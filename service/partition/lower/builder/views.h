// Splits the meshes of a module into views of sub-axes: every axis is split where a sharding uses a part of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "service/mesh/mesh.h"
#include "service/partition/local_program.h"
#include "service/sharding/mesh_view.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::partition {

/// The views of all meshes of a module. Meshes with the same order of devices share a view when their split points form
/// one chain of divisors. Meshes may have any number of the run's devices; a maximal mesh is a view of one position.
///
/// Invariant: view 0 is over all devices of the run, so that what nothing shards has a place there.
///
/// Example, a run of 8 devices: @all ["x"=2, "y"=4], @flat ["z"=8], @three ["a"=3], @one maximal on device 6.
///   view 0: @all and @flat, sub-axes 2, 4;  view 1: @three, sub-axis 3, devices 0, 1, 2;  view 2: @one, device 6
class Views {
 public:
  explicit Views(int64_t device_count);

  /// Adds a sharding, before finish(): its mesh gets a view and its parts of axes become split points.
  void add(const sharding::TensorSharding& sharding);
  void add(const mesh::MeshRef& mesh);
  /// Makes the views. View 0 is that of the first mesh over all devices, or one sub-axis over all of them.
  void finish();

  [[nodiscard]] const std::vector<sharding::MeshView>& views() const { return views_; }
  /// By view: what its sub-axes are called.
  [[nodiscard]] std::vector<ViewNames> names() const;
  /// True when every device of view `inner` is one of view `outer`, too.
  [[nodiscard]] bool covers(int outer, int inner) const;
  /// True when the view is over all devices of the run.
  [[nodiscard]] bool is_over_all(int view) const { return covers(view, 0); }
  /// View of a mesh; the empty mesh, and none at all, have view 0.
  [[nodiscard]] int view_of(const mesh::MeshRef& mesh) const;
  /// Sub-axes of an axis (or part) in the mesh's view, major first; nothing for parts that do not fit the split points.
  [[nodiscard]] std::vector<int> sub_axes_of(const mesh::MeshRef& mesh, const sharding::AxisRef& axis) const;

 private:
  struct Entry {
    mesh::MeshRef mesh;
    std::string name;             ///< symbol, where a sharding gave it
    std::vector<int64_t> splits;  ///< strides (in positions, minor products) at which the mesh is split
    int view = 0;
  };
  [[nodiscard]] const Entry* find(const mesh::MeshRef& mesh) const;
  Entry* find_or_add(const mesh::MeshRef& mesh, const std::string& name);
  /// The view that takes the entry, with its split points: one that exists, or a new one.
  void place(Entry& entry);

  int64_t device_count_;
  std::vector<Entry> entries_;
  std::vector<sharding::MeshView> views_;
  std::vector<std::vector<int64_t>> splits_;      ///< by view, while finish() runs
  std::vector<std::vector<int64_t>> devices_of_;  ///< by view: its devices, ascending
};

/// The layout that a sharding resolves to. A part of an axis that the view's sub-axes do not make up is left out, with
/// what is behind it in its dimension.
ShardLayout resolve_layout(const Views& views, const sharding::TensorSharding& sharding);

}  // namespace meshd::partition
