#include "service/sessions/mesh_stack.h"

#include <nlohmann/json.hpp>

#include "service/core/error.h"
#include "service/mesh/mesh_document.h"

namespace meshd::sessions {

MeshStack mesh_stack_from(std::string_view document) {
  MeshStack out;
  if (document.empty()) return out;
  const auto in = nlohmann::json::parse(document, nullptr, false);
  if (!in.is_object()) throw core::Error("internal", "a stored session cannot be read");
  if (!in.contains("meshes")) return out;
  for (const auto& mesh : in.at("meshes")) out.meshes.push_back(mesh::from_document(mesh.get<std::string>()));
  return out;
}

std::string mesh_stack_document(const MeshStack& stack) {
  nlohmann::json out;
  out["meshes"] = nlohmann::json::array();
  for (const mesh::Mesh& mesh : stack.meshes) out["meshes"].push_back(mesh::to_document(mesh));
  return out.dump();
}

}  // namespace meshd::sessions
