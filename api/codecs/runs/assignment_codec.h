// Decodes the device assignment of a program: its fields in the bodies of a run, a job, :explain and :suggest.
#pragma once

#include <optional>
#include <vector>

#include "api/codecs/mesh_choice.h"
#include "api/codecs/mesh_codec.h"
#include "api/json/schema.h"
#include "service/jobs/job_request.h"

namespace meshd::api {

/// The trees that a stored program was registered with, as JSON; nothing where there is none.
struct ProgramTrees {
  std::optional<Json> arguments, results;
};

/// Fields that mean the same wherever a program is placed: `mesh`, `meshes`, `in_shardings` and `out_shardings`.
struct AssignmentInput {
  const Json* mesh = nullptr;
  const Json* meshes = nullptr;
  const Json* in_shardings = nullptr;
  const Json* out_shardings = nullptr;
};
template <typename In>
std::vector<Field<In>> assignment_fields() {
  const Rules shardings{.like = json_type<std::vector<Nullable<ShardingInput>>>};
  return {{"mesh", &In::mesh, {.like = json_type<MeshInput>}},
          {"meshes", &In::meshes, {.like = map_of<MeshInput>}},
          {"in_shardings", &In::in_shardings, shardings},
          {"out_shardings", &In::out_shardings, shardings}};
}
/// Notes every mistake in them. With trees, shardings are prefixes of them. Throws not_found for ids of meshes.
void read_assignment(const AssignmentInput& in, jobs::JobRequest& out, MeshFinder& meshes, core::Diagnostics& wrong,
                     const ProgramTrees& trees = {});

}  // namespace meshd::api
