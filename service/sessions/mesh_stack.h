// The stack of a session's current meshes: entering pushes one, leaving pops it. The base is the empty mesh. Stored in
// the session's document, so that it survives a restart. JAX: `with mesh:` and jax.set_mesh (jax/_src/mesh.py);
// behaviours M23 to M31.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "service/mesh/mesh.h"

namespace meshd::sessions {

/// A session's meshes, outermost first. Plain value.
struct MeshStack {
  std::vector<mesh::Mesh> meshes;

  /// The mesh that programs of the session see; the empty mesh at the base.
  [[nodiscard]] mesh::Mesh current() const { return meshes.empty() ? mesh::Mesh{} : meshes.back(); }
};

/// The stack in a session's document, and the document of a stack. Throws Error internal when the text is not ours.
MeshStack mesh_stack_from(std::string_view document);
std::string mesh_stack_document(const MeshStack& stack);

}  // namespace meshd::sessions
