// /v1/sessions/{id}/mesh: the meshes that a session is inside of.
#include <fmt/core.h>

#include "api/codecs/mesh_choice.h"
#include "api/codecs/mesh_codec.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "service/mesh/mesh_document.h"

namespace meshd::api {
namespace {

struct MeshToEnter {
  MeshChoice mesh;
};

// What programs of a session see.
struct MeshEnvironment {
  const sessions::MeshStack& stack;
  mesh::Mesh mesh, local;
};

}  // namespace

template <>
Schema<MeshToEnter> make_schema() {
  return {"MeshChoice", {{"mesh", &MeshToEnter::mesh, {.required = true}}}};
}

template <>
Schema<MeshEnvironment> make_schema() {
  using Doc = MeshEnvironment;
  const Rules sizes{.low = 0, .high = kLargestExact - 1};
  return {"MeshEnvironment",
          {{"depth", [](const Doc& doc) { return doc.stack.meshes.size(); }, {.low = 0}},
           {"empty", [](const Doc& doc) { return doc.mesh.axes.empty(); }},
           {"mesh",
            [](const Doc& doc) {
              return or_null(doc.mesh.is_empty() ? std::nullopt : std::optional(mesh::mesh_id(doc.mesh)));
            }},
           {"axes", [](const Doc& doc) -> std::span<const mesh::Axis> { return doc.mesh.axes; }},
           {"shape", [](const Doc& doc) { return mesh::sizes_of(doc.mesh); }, sizes},
           {"local_shape", [](const Doc& doc) { return mesh::sizes_of(doc.local); }, sizes},
           {"text", [](const Doc& doc) { return fmt::format("ResourceEnv({})", mesh::to_text(doc.mesh)); }}}};
}

Schemas session_mesh_schemas() { return {&schema<MeshToEnter>(), &schema<MeshEnvironment>()}; }

namespace {

// With ?as_process= the local shape is that process's.
Response environment(const Request& request, const Services& services, const sessions::MeshStack& stack) {
  const int64_t process = request.query.integer("as_process", 0, 0, INT32_MAX);
  services.processes.check(process);
  const mesh::Mesh mesh = stack.current();
  return json_of(200, MeshEnvironment{stack, mesh, mesh::local_mesh(mesh, services.processes, process)});
}

void check_query(const Request& request) { request.query.require_known({"as_process"}); }

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
         std::string body = body_text(request, BodyPolicy::kJson);
         const RepeatedRequest repeated(request, services, body);
         const std::string session = services.sessions.get(request.capture("id"), request.principal).id;
         if (repeated.made())
           return repeated.again([&] {
             return environment(request, services, services.sessions.mesh_stack(session, request.principal));
           });
         const Json document = parse_body(request, std::move(body), BodyPolicy::kJson);
         const auto in = read_json<MeshToEnter>(document, "invalid_request");
         const auto stored =
             chosen_mesh(in.mesh, "/mesh", services.meshes, request.principal, services.engine.options().device_count);
         return environment(request, services,
                            services.sessions.push_mesh(session, request.principal, stored.mesh, repeated.key()));
       }},
      {"DELETE", "/v1/sessions/{id}/mesh", "leaveMesh", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         check_query(request);
         return environment(request, services, services.sessions.pop_mesh(request.capture("id"), request.principal));
       }},
  };
}

}  // namespace meshd::api
