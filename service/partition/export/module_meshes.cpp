#include "service/partition/export/module_meshes.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

namespace meshd::partition {

ModuleMeshes::ModuleMeshes(const LocalProgram& local, ir::Module& module)
    : module_(module), view_(local.view_names.front()), mesh_(view_.axes) {
  if (mesh_ == nullptr) {
    mesh_ = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"device", local.device_count()}}, {}, {}});
    view_.sub_axes = {{0, 1, 0}};
  }
  mesh_name_ = add_mesh(mesh_, view_.mesh.empty() ? "devices" : view_.mesh);
}

std::string ModuleMeshes::fresh_symbol(const std::string& name) {
  std::string out = name;
  while (!symbols_.insert(out).second) out = fmt::format("{}_{}", name, ++numbers_[name]);
  return out;
}

sharding::TensorSharding ModuleMeshes::edge_sharding(const ShardLayout& layout) const {
  auto out = sharding::fully_replicated(mesh_name_, mesh_, static_cast<int64_t>(layout.dims.size()));
  for (size_t d = 0; d < layout.dims.size() && layout.view == 0; ++d) {
    for (const int sub_axis : layout.dims[d]) out.dims[d].axes.push_back(view_.sub_axes[static_cast<size_t>(sub_axis)]);
    out.dims[d].axes = sharding::canonical_axes(std::move(out.dims[d].axes), *mesh_);
  }
  return out;
}

void ModuleMeshes::annotate(ir::Parameter& parameter, sharding::TensorSharding sharding) {
  if (sharding.mesh == nullptr || sharding.mesh->axes.empty()) return;
  sharding.mesh_name = add_mesh(sharding.mesh, sharding.mesh_name.empty() ? "mesh" : sharding.mesh_name);
  parameter.sharding = sharding;
  parameter.attributes.emplace_back("sdy.sharding", ir::Attribute{ir::ShardingAttr{{std::move(sharding)}, false}});
}

std::string ModuleMeshes::add_mesh(const mesh::MeshRef& mesh, const std::string& name) {
  for (const ir::NamedMesh& known : module_.meshes) {
    if (known.name == name && known.mesh->axes == mesh->axes && known.mesh->device_ids == mesh->device_ids) return name;
  }
  std::string symbol = fresh_symbol(name);
  module_.meshes.push_back(
      {symbol, std::make_shared<const mesh::Mesh>(mesh::Mesh{mesh->axes, mesh->device_ids, {}}), {}});
  return symbol;
}

}  // namespace meshd::partition
