// Meshes and shardings as JSON, in and out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/codecs/json.h"
#include "service/jobs/job_request.h"
#include "service/mesh/mesh.h"
#include "service/mesh/processes.h"
#include "service/registry/registry.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::api {

/// Reads {axis_names, devices[, shape][, axis_types]}, {axes[, device_ids]}, or a mesh document as it was answered (its
/// read-only fields are checked for equality). Notes mistakes under `pointer`; nothing is returned then. Does not look
/// at the server's devices.
std::optional<mesh::Mesh> read_mesh(const Json& json, const std::string& pointer, core::Diagnostics& wrong);

/// The document of a stored mesh: id, axes, shape, size, empty, and for concrete ones device_ids.
std::string mesh_document(const registry::StoredMesh& stored);
/// With what a process sees of it: local_devices and is_multi_process.
std::string mesh_document(const registry::StoredMesh& stored, const mesh::Processes& processes, int64_t as_process);

/// Reads {"spec": [["x"], []][, "mesh": "@name"]}, "x" and null are taken for entries; or {"parts": [2, 1]}.
std::optional<jobs::NamedSpec> read_spec(const Json& json, const std::string& pointer, core::Diagnostics& wrong);
/// "x,,y.z" of a query: a field a dimension, axes joined by dots.
jobs::NamedSpec parse_spec_query(std::string_view text);

/// The sharding that a spec means over a mesh, verified. Throws invalid_spec: more dimensions than `rank`, unknown or
/// repeated axes.
sharding::TensorSharding sharding_on(const mesh::MeshRef& mesh, const jobs::NamedSpec& spec, int64_t rank);

/// {"spec": [["x"],[]]}; with "sdy" beside it where the spec cannot say everything; `several_meshes` adds "mesh":
/// "@name".
std::string sharding_document(const std::optional<sharding::TensorSharding>& sharding, int64_t rank,
                              bool several_meshes);

}  // namespace meshd::api
