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
/// one chain of divisors.
class Views {
 public:
  explicit Views(int64_t device_count);

  /// Adds a sharding, before finish(): its mesh gets a view and its parts of axes become split points.
  void add(const sharding::TensorSharding& sharding);
  void add(const mesh::MeshRef& mesh);
  /// Makes the views. View 0 is the one of the mesh that was added first, or one sub-axis over all devices.
  void finish();

  [[nodiscard]] const std::vector<sharding::MeshView>& views() const { return views_; }
  /// By view: what its sub-axes are called.
  [[nodiscard]] std::vector<ViewNames> names() const;
  /// View of a mesh; empty and maximal meshes, and none at all, have view 0.
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

  int64_t device_count_;
  std::vector<Entry> entries_;
  std::vector<sharding::MeshView> views_;
};

/// The layout that a sharding resolves to. A part of an axis that the view's sub-axes do not make up is left out, with
/// what is behind it in its dimension.
ShardLayout resolve_layout(const Views& views, const sharding::TensorSharding& sharding);

}  // namespace meshd::partition
