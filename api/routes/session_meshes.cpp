// /v1/sessions/{id}/mesh: the meshes that a session is inside of.
#include "api/codecs/json.h"
#include "api/routes/routes.h"
#include "service/mesh/mesh_document.h"

namespace meshd::api {
namespace {

std::string sizes_json(const mesh::Mesh& mesh) {
  std::vector<int64_t> sizes;
  for (const mesh::Axis& axis : mesh.axes) sizes.push_back(axis.size);
  return integer_list(sizes);
}

std::string environment_document(const sessions::MeshStack& stack, const mesh::Processes& processes, int64_t process) {
  const mesh::Mesh mesh = stack.current();
  std::string axes;
  for (const mesh::Axis& axis : mesh.axes) {
    axes += (axes.empty() ? "" : ",") + std::string("{\"name\":") + quote(axis.name) +
            ",\"size\":" + std::to_string(axis.size) + "}";
  }
  return "{\"depth\":" + std::to_string(stack.meshes.size()) + ",\"empty\":" + (mesh.axes.empty() ? "true" : "false") +
         ",\"mesh\":" + (mesh.is_empty() ? "null" : quote(mesh::mesh_id(mesh))) + ",\"axes\":[" + axes +
         "],\"shape\":" + sizes_json(mesh) +
         ",\"local_shape\":" + sizes_json(mesh::local_mesh(mesh, processes, process)) +
         ",\"text\":" + quote("ResourceEnv(" + mesh::to_text(mesh) + ")") + "}";
}

// With ?as_process= the local shape is that process's.
Response environment(const Request& request, const Services& services, const sessions::MeshStack& stack) {
  const int64_t process = request.query.integer("as_process", 0, 0, INT32_MAX);
  services.processes.check(process);
  return json(200, environment_document(stack, services.processes, process));
}

void check_query(const Request& request) {
  static constexpr std::string_view kKnown[] = {"as_process"};
  request.query.require_known(kKnown);
}

}  // namespace

std::vector<Route> session_mesh_routes(Services& services) {
  return {
      {"GET", "/v1/sessions/{id}/mesh", "getSessionMesh", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         check_query(request);
         return environment(request, services, services.sessions.mesh_stack(request.capture("id"), request.principal));
       }},
      {"POST", "/v1/sessions/{id}/mesh", "enterMesh", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         check_query(request);
         const Json body = Json::parse(request.body().read_all(body_limit(BodyPolicy::kJson)));
         core::Diagnostics wrong;
         ObjectReader reader(body, "", wrong);
         const auto id = reader.string("mesh");
         if (!id && reader.field("mesh") == nullptr) reader.missing("mesh");
         reader.finish();
         wrong.throw_if_any("invalid_request");
         const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
         const auto stored = services.meshes.get(*id, request.principal);
         return environment(request, services, services.sessions.push_mesh(session, request.principal, stored.mesh));
       }},
      {"DELETE", "/v1/sessions/{id}/mesh", "leaveMesh", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         check_query(request);
         return environment(request, services, services.sessions.pop_mesh(request.capture("id"), request.principal));
       }},
  };
}

}  // namespace meshd::api
