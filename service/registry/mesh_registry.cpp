#include <set>

#include "service/core/error.h"
#include "service/mesh/mesh_document.h"
#include "service/quotas/limits.h"
#include "service/registry/registry.h"

namespace meshd::registry {

void verify_mesh(const mesh::Mesh& mesh, int64_t server_devices) {
  core::Diagnostics wrong;
  std::set<std::string> names;
  std::vector<std::string> repeated;
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    const mesh::Axis& axis = mesh.axes[i];
    const std::string pointer = "/axis_names/" + std::to_string(i);
    if (axis.name.empty()) wrong.add(pointer, "an axis name must not be empty");
    if (!names.insert(axis.name).second) repeated.push_back(axis.name);
    if (axis.size < 0)
      wrong.add("/axes/" + std::to_string(i) + "/size",
                "an axis has at least size 0, got " + std::to_string(axis.size));
  }
  if (!repeated.empty())
    wrong.add("/axis_names", "axis names must differ; given more than once: " + mesh::quoted_sorted(repeated));
  const auto given = static_cast<int64_t>(mesh.device_ids.size());
  if (given > 0) {
    int64_t expected = 1;
    for (const mesh::Axis& axis : mesh.axes) expected = core::checked_mul(expected, axis.size);
    if (given != expected) {
      wrong.add("/devices",
                std::to_string(given) + " devices for a mesh of " + std::to_string(expected) + " positions");
    }
    std::set<int64_t> seen;
    for (size_t i = 0; i < mesh.device_ids.size(); ++i) {
      const int64_t device = mesh.device_ids[i];
      const std::string pointer = "/devices/" + std::to_string(i);
      if (!seen.insert(device).second) wrong.add(pointer, "device " + std::to_string(device) + " is named twice");
      if (device < 0 || device >= server_devices) {
        wrong.add(pointer, "there is no device " + std::to_string(device) + "; this server has devices 0 to " +
                               std::to_string(server_devices - 1));
      }
    }
  }
  if (!mesh.axis_types.empty() && mesh.axis_types.size() != mesh.axes.size()) {
    wrong.add("/axis_types", "number of axis names should match the number of axis_types: " +
                                 std::to_string(mesh.axes.size()) + " and " + std::to_string(mesh.axis_types.size()));
  }
  wrong.throw_if_any("invalid_mesh");
}

std::pair<StoredMesh, bool> MeshRegistry::put(const mesh::Mesh& mesh, const std::string& principal) {
  storage::MeshRow row;
  row.document = mesh::to_document(mesh);
  row.id = mesh::mesh_id(mesh);
  row.principal = principal;
  row.created = clock_.wall();
  bool fresh = false;
  std::optional<storage::MeshRow> known =
      catalog_.read([&](storage::Reader& reader) { return reader.mesh(row.id, principal); });
  if (known) return {{row.id, mesh, known->created}, false};
  catalog_.write([&](storage::Transaction& transaction) {
    fresh = transaction.put_mesh(row);
    if (!fresh) return;
    const int64_t others = transaction.count_of(storage::Counted::kMeshes, principal) - 1;
    quotas::require_below(others, limit_, principal, "meshes");
  });
  return {{row.id, mesh, row.created}, fresh};
}

StoredMesh MeshRegistry::get(std::string_view id, std::string_view principal) {
  const auto row = catalog_.read([&](storage::Reader& reader) { return reader.mesh(id, principal); });
  if (!row) throw core::Error("not_found", "there is no mesh '" + std::string(id) + "'");
  return {row->id, mesh::from_document(row->document), row->created};
}

MeshRegistry::Page MeshRegistry::list(std::string_view principal, const storage::PageRequest& page) {
  auto rows = catalog_.read([&](storage::Reader& reader) { return reader.meshes(principal, page); });
  Page out;
  out.next = std::move(rows.next);
  for (const storage::MeshRow& row : rows.items)
    out.items.push_back({row.id, mesh::from_document(row.document), row.created});
  return out;
}

void MeshRegistry::remove(std::string_view id, std::string_view principal) {
  bool removed = false;
  catalog_.write([&](storage::Transaction& transaction) { removed = transaction.delete_mesh(id, principal); });
  if (!removed) throw core::Error("not_found", "there is no mesh '" + std::string(id) + "'");
}

}  // namespace meshd::registry
