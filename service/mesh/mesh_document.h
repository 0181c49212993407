// The canonical document of a mesh, by which a stored mesh is interned (M4, M5, M8).
#pragma once

#include <string>
#include <string_view>

#include "service/mesh/mesh.h"

namespace meshd::mesh {

/// One line of JSON with everything that belongs to the mesh's identity: axes in order, device ids (absent: abstract),
/// axis types when one is not auto. Equal meshes have equal documents.
std::string to_document(const Mesh& mesh);
/// The mesh of a canonical document. Throws Error internal when it is none: it comes from storage only.
Mesh from_document(std::string_view document);
/// For people: Mesh(device_ids=[[0, 1], [2, 3]], axis_names=('x', 'y')); for abstract ones AbstractMesh('x': 4, 'y':
/// 2).
std::string to_repr(const Mesh& mesh);
/// Sizes of its axes, in order.
std::vector<int64_t> sizes_of(const Mesh& mesh);
/// mesh_<digest of the canonical document>.
std::string mesh_id(const Mesh& mesh);

}  // namespace meshd::mesh
