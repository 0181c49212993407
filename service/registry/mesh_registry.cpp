#include <fmt/core.h>

#include "service/core/error.h"
#include "service/mesh/mesh_document.h"
#include "service/quotas/limits.h"
#include "service/registry/registry.h"

namespace meshd::registry {

void verify_mesh(const mesh::Mesh& mesh, int64_t server_devices) {
  core::Diagnostics wrong;
  for (size_t i = 0; i < mesh.device_ids.size(); ++i) {
    const int64_t device = mesh.device_ids[i];
    if (device >= 0 && device < server_devices) continue;
    wrong.add(fmt::format("/devices/{}", i),
              fmt::format("there is no device {}; this server has devices 0 to {}", device, server_devices - 1));
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
  auto row = catalog_.read([&](storage::Reader& reader) { return reader.mesh(id, principal); });
  if (!row) {
    // The row of an array that is kept in memory, with its mesh, may be on its way.
    try {
      catalog_.write([&](storage::Transaction& transaction) { row = transaction.mesh(id, principal); });
    } catch (const core::Error&) {
      row.reset();  // what failed are others' writes
    }
  }
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

int64_t MeshRegistry::count(std::string_view principal) {
  return catalog_.read([&](storage::Reader& reader) { return reader.count_of(storage::Counted::kMeshes, principal); });
}

void MeshRegistry::remove(std::string_view id, std::string_view principal) {
  bool removed = false;
  catalog_.write([&](storage::Transaction& transaction) { removed = transaction.delete_mesh(id, principal); },
                 storage::Space::kFrees);
  if (!removed) throw core::Error("not_found", "there is no mesh '" + std::string(id) + "'");
}

}  // namespace meshd::registry
