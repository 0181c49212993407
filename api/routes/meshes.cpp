// /v1/meshes: meshes by content; the same mesh has the same id.
#include <fmt/core.h>

#include "api/codecs/mesh_codec.h"
#include "api/fields/conditions.h"
#include "api/routes/routes.h"
#include "service/mesh/mesh_document.h"

namespace meshd::api {
namespace {

mesh::Mesh read_posted(Request& request, const Services& services) {
  const Json body = body_json(request, BodyPolicy::kJson);
  core::Diagnostics wrong;
  auto mesh = read_mesh(body, "", wrong);
  wrong.throw_if_any("invalid_mesh");
  registry::verify_mesh(*mesh, services.engine.options().device_count);
  return *mesh;
}

Response with_etag(Response response, const std::string& id) {
  response.headers.set("ETag", fmt::format(R"("{}")", id));
  return response;
}

// A mesh names its abstract form, which is a mesh as well.
std::pair<registry::StoredMesh, bool> put_with_abstract(Services& services, const mesh::Mesh& mesh,
                                                        const std::string& principal) {
  if (!mesh.device_ids.empty()) services.meshes.put(mesh::abstract_form(mesh), principal);
  return services.meshes.put(mesh, principal);
}

}  // namespace

Schemas mesh_schemas() { return {&schema<MeshInput>(), &schema<MeshDocument>(), &JsonCodec<Page<MeshDocument>>::of()}; }

std::vector<Route> mesh_routes(Services& services) {
  return {
      {"POST", "/v1/meshes", "createMesh", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const mesh::Mesh mesh = read_posted(request, services);
         const auto [stored, fresh] = put_with_abstract(services, mesh, request.principal);
         return with_etag(json_of(fresh ? 201 : 200, MeshDocument{stored}).with("Location", "/v1/meshes/" + stored.id),
                          stored.id);
       }},
      {"GET", "/v1/meshes", "listMeshes", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         const auto page = services.meshes.list(request.principal, page_of(request));
         Page<MeshDocument> out{{}, page.next};
         for (const auto& stored : page.items) out.items.push_back({stored});
         return list_response(request, out);
       }},
      {"GET", "/v1/meshes/{id}", "getMesh", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         request.query.require_known({"view", "as_process"});
         const auto stored = services.meshes.get(request.capture("id"), request.principal);
         const auto view = request.query.get("view");
         if (view && *view == "text") return text(200, mesh::to_text(stored.mesh));
         if (view && *view == "repr") return text(200, mesh::to_repr(stored.mesh));
         if (view && *view != "json") throw core::Error("invalid_query", "view: expected json, text or repr");
         if (request.query.has("as_process")) {
           const int64_t process = request.query.integer("as_process", 0, 0, INT32_MAX);
           return with_etag(json_of(200, MeshDocument{stored, &services.processes, process}),
                            fmt::format("{}.process{}", stored.id, process));
         }
         return with_etag(json_of(200, MeshDocument{stored}), stored.id);
       }},
      {"GET", "/v1/meshes/{id}/local", "getLocalMesh", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         request.query.require_known({"process"});
         const auto stored = services.meshes.get(request.capture("id"), request.principal);
         const int64_t process = request.query.integer("process", 0, 0, INT32_MAX);
         const auto [local, fresh] =
             put_with_abstract(services, mesh::local_mesh(stored.mesh, services.processes, process), request.principal);
         static_cast<void>(fresh);
         return with_etag(json_of(200, MeshDocument{local}), local.id);
       }},
      {"PATCH", "/v1/meshes/{id}", "patchMesh", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         // A mesh never changes: the same content is taken, any other is refused (behaviour M6).
         const auto stored = services.meshes.get(request.capture("id"), request.principal);
         const mesh::Mesh asked = read_posted(request, services);
         if (mesh::mesh_id(asked) != stored.id)
           throw core::Error("mesh_immutable", "Cannot reassign attributes of a mesh; post another one");
         return with_etag(json_of(200, MeshDocument{stored}), stored.id);
       }},
      {"DELETE", "/v1/meshes/{id}", "deleteMesh", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const std::string id = services.meshes.get(request.capture("id"), request.principal).id;
         require_match(request, fmt::format(R"("{}")", id));
         services.meshes.remove(id, request.principal);
         return no_content();
       }},
  };
}

}  // namespace meshd::api
