#include "service/propagation/placement.h"

#include <algorithm>

namespace meshd::propagation {

bool Placement::is_closed() const {
  return std::none_of(dims.begin(), dims.end(), [](const sharding::DimSharding& dim) { return dim.open; });
}

bool Placement::is_blank() const {
  return has_no_axes() && std::all_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.open; });
}

bool Placement::has_no_axes() const {
  return replicated.empty() && unreduced.empty() &&
         std::all_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.axes.empty(); });
}

int MeshTable::intern(const std::string& name, const mesh::MeshRef& mesh) {
  int content = static_cast<int>(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.mesh != mesh && (row.mesh->axes != mesh->axes || row.mesh->device_ids != mesh->device_ids)) continue;
    if (row.name == name) return static_cast<int>(i);
    content = row.content;
  }
  rows_.push_back({name, mesh, content});
  return static_cast<int>(rows_.size()) - 1;
}

Placement MeshTable::read(const sharding::TensorSharding& sharding) {
  const mesh::Mesh& mesh = *sharding.mesh;
  const auto without_ones = [&](const AxisList& axes) {
    AxisList out;
    for (const AxisRef& axis : axes) {
      if (sharding::axis_size(axis, mesh) != 1) out.push_back(axis);
    }
    return out;
  };
  Placement out;
  out.mesh = intern(sharding.mesh_name, sharding.mesh);
  for (const sharding::DimSharding& dim : sharding.dims) {
    sharding::DimSharding kept{without_ones(dim.axes), dim.open, dim.priority};
    if (kept.axes.empty() && !kept.open) kept.priority.reset();
    out.dims.push_back(std::move(kept));
  }
  out.replicated = without_ones(sharding.replicated);
  out.unreduced = without_ones(sharding.unreduced);
  out.unreduced_kind = sharding.unreduced_kind;
  return out;
}

sharding::TensorSharding MeshTable::write(const Placement& placement) const {
  const Row& row = rows_[static_cast<size_t>(placement.mesh)];
  sharding::TensorSharding out;
  out.mesh_name = row.name;
  out.mesh = row.mesh;
  for (const sharding::DimSharding& dim : placement.dims) out.dims.push_back({dim.axes, false, std::nullopt});
  out.unreduced = placement.unreduced;
  out.unreduced_kind = placement.unreduced_kind;
  return out;
}

}  // namespace meshd::propagation
