#include "api/codecs/mesh_choice.h"

#include <fmt/core.h>

#include "api/codecs/at_pointer.h"
#include "api/codecs/mesh_codec.h"
#include "service/mesh/mesh_document.h"

namespace meshd::api {
namespace {

// The id, where the mesh is chosen by it.
const std::string* chosen_id(const Json& json) {
  if (const auto* id = json.as<std::string>()) return id;
  const auto* object = json.as<JsonObject>();
  const Json* id = object != nullptr && object->size() == 1 ? json.find("id") : nullptr;
  return id == nullptr ? nullptr : id->as<std::string>();
}

}  // namespace

const mesh::Mesh& MeshFinder::find(const std::string& id) {
  const auto known = found_.find(id);
  if (known != found_.end()) return known->second;
  return found_.emplace(id, meshes_.get(id, principal_).mesh).first->second;
}

std::optional<mesh::Mesh> read_mesh_choice(const Json& json, const std::string& pointer, MeshFinder& finder,
                                           core::Diagnostics& wrong) {
  if (const std::string* id = chosen_id(json))
    return at_pointer(pointer, [&]() -> std::optional<mesh::Mesh> { return finder.find(*id); });
  return read_mesh(json, pointer, wrong);
}

bool JsonCodec<MeshChoice>::read(const Json& json, const Place& place, MeshChoice& out) {
  if (json.as<std::string>() == nullptr && json.as<JsonObject>() == nullptr) {
    place.wrong.add(place.pointer, fmt::format("expected the id of a mesh, or a mesh, got {}", json.kind_name()));
    return false;
  }
  out.json = &json;
  return true;
}

registry::StoredMesh chosen_mesh(const MeshChoice& choice, const std::string& pointer, registry::MeshRegistry& meshes,
                                 const std::string& principal, int64_t server_devices) {
  if (const std::string* id = chosen_id(*choice.json))
    return at_pointer(pointer, [&] { return meshes.get(*id, principal); });
  core::Diagnostics wrong;
  auto mesh = read_mesh(*choice.json, pointer, wrong);
  wrong.throw_if_any("invalid_mesh");
  registry::verify_mesh(*mesh, server_devices);
  return {mesh::mesh_id(*mesh), std::move(*mesh), {}};
}

}  // namespace meshd::api
