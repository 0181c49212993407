#include "service/propagation/graph/open_sharding.h"

#include <fmt/core.h>

#include <algorithm>

namespace meshd::propagation {

bool OpenSharding::is_closed() const {
  return std::none_of(dims.begin(), dims.end(), [](const sharding::DimSharding& dim) { return dim.open; });
}

bool OpenSharding::is_blank() const {
  return has_no_axes() && std::all_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.open; });
}

bool OpenSharding::has_no_axes() const {
  return replicated.empty() && unreduced.empty() &&
         std::all_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.axes.empty(); });
}

namespace {

/// Written or not, devices in their natural order are the same.
bool same_devices(const mesh::Mesh& a, const mesh::Mesh& b) {
  if (a.device_ids == b.device_ids) return true;
  if (a.axes.empty()) return false;
  for (int64_t i = 0; i < a.position_count(); ++i) {
    if (a.device_at(i) != b.device_at(i)) return false;
  }
  return true;
}

}  // namespace

std::string MeshTable::free_name(const mesh::Mesh& mesh) const {
  const auto taken = [&](const std::string& name) {
    return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.name == name; });
  };
  std::string stem = "mesh";
  if (mesh.is_maximal()) stem = fmt::format("maximal_mesh_{}", mesh.device_ids[0]);
  if (mesh.is_empty()) stem = "empty_mesh";
  std::string name = stem;
  for (int i = 0; taken(name); ++i) name = fmt::format("{}_{}", stem, i);
  return name;
}

int MeshTable::intern(const std::string& name, const mesh::MeshRef& mesh) {
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.mesh == mesh || (row.mesh->axes == mesh->axes && same_devices(*row.mesh, *mesh)))
      return static_cast<int>(i);
  }
  rows_.push_back({name.empty() ? free_name(*mesh) : name, mesh});
  return static_cast<int>(rows_.size()) - 1;
}

std::vector<ir::NamedMesh> MeshTable::named() const {
  std::vector<ir::NamedMesh> out;
  for (const Row& row : rows_) out.push_back({row.name, row.mesh, {}});
  return out;
}

OpenSharding MeshTable::read(const sharding::TensorSharding& sharding) {
  const mesh::Mesh& mesh = *sharding.mesh;
  const auto without_ones = [&](const AxisList& axes) {
    AxisList out;
    for (const AxisRef& axis : axes) {
      if (sharding::axis_size(axis, mesh) != 1) out.push_back(axis);
    }
    return out;
  };
  OpenSharding out;
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

sharding::TensorSharding MeshTable::write(const OpenSharding& sharding) const {
  const Row& row = rows_[static_cast<size_t>(sharding.mesh)];
  sharding::TensorSharding out;
  out.mesh_name = row.name;
  out.mesh = row.mesh;
  for (const sharding::DimSharding& dim : sharding.dims) out.dims.push_back({dim.axes, false, std::nullopt});
  out.unreduced = sharding.unreduced;
  out.unreduced_kind = sharding.unreduced_kind;
  return out;
}

}  // namespace meshd::propagation
