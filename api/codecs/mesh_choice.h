// A mesh in a request: the id of a stored one, or a mesh itself. One reader for all bodies that have one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "api/json/schema.h"
#include "service/mesh/mesh.h"
#include "service/registry/registry.h"

namespace meshd::api {

/// Finds meshes that a request names by their ids, for one principal, and remembers them. One thread.
class MeshFinder {
 public:
  MeshFinder(registry::MeshRegistry& meshes, std::string principal)
      : meshes_(meshes), principal_(std::move(principal)) {}

  /// Throws not_found.
  const mesh::Mesh& find(const std::string& id);
  /// Those that a job was accepted with, which may have been deleted since.
  void know(std::map<std::string, mesh::Mesh> meshes) { found_ = std::move(meshes); }
  [[nodiscard]] const std::map<std::string, mesh::Mesh>& found() const { return found_; }

 private:
  registry::MeshRegistry& meshes_;
  const std::string principal_;
  std::map<std::string, mesh::Mesh> found_;
};

/// Reads "mesh_..." or {"id": "mesh_..."}, the mesh of this id, or a mesh as read_mesh does. Notes mistakes under
/// `pointer`; nothing is returned then. Throws not_found for an id that the principal does not see.
std::optional<mesh::Mesh> read_mesh_choice(const Json& json, const std::string& pointer, MeshFinder& finder,
                                           core::Diagnostics& wrong);

/// A field of a body that is a mesh's id, or a mesh itself. The body outlives it.
struct MeshChoice {
  const Json* json = nullptr;
};
template <>
struct JsonCodec<MeshChoice> {
  static JsonType type() { return json_type<std::string>(); }
  static bool read(const Json& json, const Place& place, MeshChoice& out);
};

/// The mesh that the field `pointer` of a body chooses, with its id; it need not be stored. Throws not_found,
/// invalid_mesh (also for devices that the server does not have).
registry::StoredMesh chosen_mesh(const MeshChoice& choice, const std::string& pointer, registry::MeshRegistry& meshes,
                                 const std::string& principal, int64_t server_devices);

}  // namespace meshd::api
