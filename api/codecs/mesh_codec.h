// Meshes and shardings as JSON, in and out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/json/schema.h"
#include "service/jobs/job_request.h"
#include "service/mesh/mesh.h"
#include "service/mesh/processes.h"
#include "service/registry/registry.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::api {

/// Reads {axis_names, devices[, shape][, axis_types]}, {axes[, device_ids]}, or a mesh document of a response (its
/// read-only fields are checked for equality). Notes mistakes under `pointer`; nothing is returned then. Does not check
/// the server's devices.
std::optional<mesh::Mesh> read_mesh(const Json& json, const std::string& pointer, core::Diagnostics& wrong);

/// A stored mesh; with `processes` also what the process `as_process` sees of it.
struct MeshDocument {
  const registry::StoredMesh& stored;
  const mesh::Processes* processes = nullptr;
  int64_t as_process = 0;
};
template <>
Schema<mesh::Axis> make_schema();
struct MeshInput;
template <>
Schema<MeshInput> make_schema();
template <>
Schema<MeshDocument> make_schema();

/// Axes of each dimension. In requests "x" means ["x"] and null means [].
struct PartitionSpec {
  std::vector<std::vector<std::string>> dims;
};
template <>
struct JsonCodec<PartitionSpec> {
  static JsonType type() { return json_type<std::vector<std::vector<std::string>>>(); }
  static void append(std::string& out, const PartitionSpec& spec) { append_json(out, spec.dims); }
  static bool read(const Json& json, const Place& place, PartitionSpec& out);
};

/// A sharding of a request.
struct ShardingInput {
  std::optional<PartitionSpec> spec;
  std::optional<std::vector<int64_t>> parts;
  std::optional<std::string> mesh;
  const Json* sdy = nullptr;
};
template <>
Schema<ShardingInput> make_schema();

/// The sharding of a value: spec, or sdy where a spec cannot express it.
struct ShardingDocument {
  std::optional<PartitionSpec> spec;
  std::optional<std::string> sdy, mesh;
};
template <>
Schema<ShardingDocument> make_schema();

/// A layout along mesh axes; `several_meshes` adds the mesh's name. Without a sharding, `rank` replicated dimensions.
ShardingDocument sharding_document(const std::optional<sharding::TensorSharding>& sharding, int64_t rank,
                                   bool several_meshes = false);

/// Reads {"spec": [["x"], []][, "mesh": "@name"]}, "x" and null are taken for entries; or {"parts": [2, 1]}.
std::optional<jobs::NamedSpec> read_spec(const Json& json, const std::string& pointer, core::Diagnostics& wrong);
/// "x,,y.z" of a query: a field a dimension, axes joined by dots.
jobs::NamedSpec parse_spec_query(std::string_view text);

/// A spec of a body; none is replicated.
jobs::NamedSpec named_spec(const std::optional<PartitionSpec>& spec);

/// The sharding that a spec means over a mesh, verified. Throws invalid_spec: more dimensions than `rank`, unknown or
/// repeated axes.
sharding::TensorSharding sharding_on(const mesh::MeshRef& mesh, const jobs::NamedSpec& spec, int64_t rank);

}  // namespace meshd::api
