// /v1/arrays: upload, metadata, data, shards, reshard, delete.
#include <fmt/core.h>

#include "api/codecs/array_document.h"
#include "api/codecs/array_views.h"
#include "api/codecs/explain/layout_picture.h"
#include "api/codecs/mesh_choice.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/value.h"
#include "api/fields/conditions.h"
#include "api/routes/arrays/array_archives.h"
#include "api/routes/arrays/array_download.h"
#include "api/routes/arrays/array_parts.h"
#include "api/routes/arrays/array_replace.h"
#include "api/routes/arrays/array_upload.h"
#include "api/routes/arrays/named_arrays.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "api/routes/waiting.h"
#include "service/arrays/reshard.h"
#include "service/core/ids.h"

namespace meshd::api {
namespace {

void check_condition(const Request& request, arrays::Array& array) {
  require_match(request, array_etag(array.info().id, array.version()));
}

// By its id or its name, as the path has it.
arrays::ArrayRef array_of(const Request& request, Services& services) {
  const bool has_id = request.captures.front().first == "id";
  return has_id ? services.arrays.find(request.capture("id"), request.principal)
                : services.arrays.find_named(request.capture("name"), request.principal);
}

Response remove(const Request& request, Services& services, const std::optional<storage::IdempotencyRow>& key = {}) {
  const arrays::ArrayRef array = array_of(request, services);
  check_condition(request, *array);
  services.arrays.remove(array, key);
  return no_content();
}

// An array that is replaced between being found and being read: what took its place is found.
Response download_named(Request& request, Services& services) {
  for (;;) {
    const arrays::ArrayRef array = array_of(request, services);
    try {
      return download_array(request, services, array);
    } catch (const core::Error& error) {
      const bool is_deleted = array->state().with([](const arrays::Array::State& state) { return state.deleted; });
      if (error.code() != core::ErrorCode("not_found") || !is_deleted) throw;
    }
  }
}

int64_t device_of(const Request& request) {
  const std::string& text = request.capture("device");
  if (const auto device = whole_number(text)) return *device;
  throw core::Error("not_found", "'" + text + "' is no device");
}

// The sharding of the new array.
struct ReshardInput {
  MeshChoice mesh;
  std::optional<PartitionSpec> spec;
  std::optional<std::string> name, durability;
};

}  // namespace

template <>
Schema<ReshardInput> make_schema() {
  using In = ReshardInput;
  return {"ReshardInput",
          {{"mesh", &In::mesh, {.required = true}},
           {"spec", &In::spec, {.required = true}},
           {"name", &In::name},
           {"durability", &In::durability, {.words = kDurabilities}}}};
}

Schemas array_schemas() {
  Schemas out{&schema<ValueInput>(),
              &schema<ValueDocument>(),
              &schema<ArrayDocument>(),
              &schema<ReshardInput>(),
              &assemble_schema(),
              &deleted_schema(),
              &JsonCodec<Page<ArrayDocument>>::of(),
              &JsonCodec<Page<ShardDocument>>::of()};
  for (const SchemaBase* query : array_query_schemas()) out.push_back(query);
  return out;
}

namespace {

// The array that the first request with this key has made.
Response made_before(const RepeatedRequest& repeated, const Request& request, Services& services) {
  return repeated.again([&] { return described(*services.arrays.find(*repeated.made(), request.principal), 201); });
}

Response create(Request& request, Services& services) {
  const RepeatedRequest repeated(request, services, content_facts(request));
  if (repeated.made()) return made_before(repeated, request, services);
  return described(*upload_array(request, services, repeated.key()), 201);
}

// A new array with the same values in another sharding; the old one stays.
Response reshard(Request& request, Services& services) {
  std::string sent = body_text(request, BodyPolicy::kJson);
  const RepeatedRequest repeated(request, services, sent);
  if (repeated.made()) return made_before(repeated, request, services);
  const arrays::ArrayRef from = array_of(request, services);
  const Json body = parse_body(request, std::move(sent), BodyPolicy::kJson);
  if (body.find("parts") != nullptr) {
    throw core::Error("not_implemented",
                      "a constraint by integer specs outside of a partitioned program; name a mesh and a spec");
  }
  const auto in = read_json<ReshardInput>(body, "invalid_request");
  const registry::StoredMesh stored =
      chosen_mesh(in.mesh, "/mesh", services.meshes, request.principal, services.engine.options().device_count);
  auto mesh = std::make_shared<const mesh::Mesh>(stored.mesh);
  arrays::ReshardTarget target{
      stored.id, sharding_on(mesh, named_spec(in.spec), from->info().type.rank()), in.name, {}, repeated.key()};
  if (in.durability) target.durability = durability_of(*in.durability);
  return described(*arrays::reshard(services.arrays, from, std::move(target), request.principal), 201);
}

// ?wait=ready returns when the array is complete, or not any more (behaviour G29); ?view= gives it as text.
Response show(const Request& request, Services& services) {
  request.query.require_known({"wait", "view"});
  const arrays::ArrayRef array = array_of(request, services);
  if (const auto wait = request.query.get("wait")) {
    if (*wait != "ready") throw core::Error("invalid_query", "wait: expected ready");
    wait_until(
        request, kLongestWaitSeconds, [&] { return array->is_settled(); },
        [&](const std::function<void()>&) {
          array->watchers().add(request.waiter);
          return std::shared_ptr<void>();
        });
    static_cast<void>(services.arrays.find(array->info().id, request.principal));  // it may have expired meanwhile
  }
  const auto view = request.query.get("view");
  if (view && *view == "text") return text(200, array_text(*array) + "\n");
  if (view && *view == "repr") return text(200, array_repr(*array) + "\n");
  if (view && *view != "json") throw core::Error("invalid_query", "view: expected json, text or repr");
  return described(*array, 200);
}

Response list_shards(const Request& request, Services& services) {
  request.query.require_known({"scope", "as_process", "state"});
  const arrays::ArrayRef array = array_of(request, services);
  ShardScope scope;
  scope.process = request.query.integer("as_process", -1, 0, INT32_MAX);
  if (scope.process >= 0) services.processes.check(scope.process);
  const std::string_view word = request.query.get("scope").value_or("global");
  if (word != "local" && word != "global") throw core::Error("invalid_query", "scope: expected local or global");
  scope.local_only = word == "local";
  const auto state = request.query.get("state");
  if (state && *state != "missing" && *state != "received")
    throw core::Error("invalid_query", "state: expected missing or received");
  if (state) scope.only_received = *state == "received";
  array->state().with([&](const arrays::Array::State& current) {
    if (current.parts && !current.parts->are_chunks) scope.received = current.parts->received;
  });
  const std::string path = fmt::format("/v1/arrays/{}/shards", array->info().id);
  return list_response(request,
                       Page<ShardDocument>{shard_documents(array->layout(), services.processes, scope, path), ""});
}

}  // namespace

std::vector<Route> array_routes(Services& services) {
  return {
      {"POST", "/v1/arrays", "createArray", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         return is_archive(request) ? import_arrays(request, services) : create(request, services);
       }},
      {"POST", "/v1/arrays:upload", "uploadArray", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return create(request, services); }},
      {"GET", "/v1/arrays", "listArrays", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         storage::ArrayFilter filter;
         filter.session = std::string(request.query.get("session").value_or(""));
         if (request.query.has("session") &&
             (filter.session.size() != 40 || !core::looks_like_id(filter.session, "ses")))
           throw core::Error("invalid_query", "session: expected the id of a session, ses_...");
         filter.name = std::string(request.query.get("name").value_or(""));
         filter.prefix = std::string(request.query.get("prefix").value_or(""));
         const auto page =
             services.arrays.list(request.principal, filter, page_of(request, {"session", "name", "prefix"}));
         Page<ArrayDocument> out{{}, page.next};
         for (const auto& array : page.items) out.items.emplace_back(*array);
         return list_response(request, out);
       }},
      {"DELETE", "/v1/arrays", "deleteArrays", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return delete_prefix(request, services); }},
      {"GET", "/v1/arrays/by-name/{name...}", "getArrayByName", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return show(request, services); }},
      {"DELETE", "/v1/arrays/by-name/{name...}", "deleteArrayByName", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return remove(request, services); }},
      {"GET", "/v1/arrays/by-name/{name...}/data", "getArrayDataByName", BodyPolicy::kNone, RunOn::kWorker,
       Access::kReader, [&services](Request& request) { return download_named(request, services); }},
      {"PUT", "/v1/arrays/by-name/{name...}/data", "putArrayDataByName", BodyPolicy::kBulk, RunOn::kWorker,
       Access::kUser, [&services](Request& request) { return put_named_data(request, services); }},
      {"GET", "/v1/arrays/{id}", "getArray", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return show(request, services); }},
      {"DELETE", "/v1/arrays/{id}", "deleteArray", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return remove(request, services); }},
      {"POST", "/v1/arrays/{id}:delete", "deleteArrayByPost", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const RepeatedRequest repeated(request, services, "");
         if (repeated.made()) return repeated.again([] { return no_content(); });
         return remove(request, services, repeated.key());
       }},
      {"POST", "/v1/arrays/{id}:reshard", "reshardArray", BodyPolicy::kJson, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return reshard(request, services); }},
      {"GET", "/v1/arrays/{id}/data", "getArrayData", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return download_array(request, services, array_of(request, services)); }},
      {"PUT", "/v1/arrays/{id}/data", "putArrayData", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return put_array_data(request, services, array_of(request, services)); }},
      {"GET", "/v1/arrays/{id}/shards", "listShards", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return list_shards(request, services); }},
      {"GET", "/v1/arrays/{id}/shards/{device}", "getShardData", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         const int64_t device = device_of(request);
         const int64_t process = request.query.integer("as_process", -1, 0, INT32_MAX);
         if (process >= 0) services.processes.check(process);
         if (process >= 0 && services.processes.of(device) != process) {
           throw core::Error("forbidden", fmt::format("device {} is process {}'s; a process reads its own shards only",
                                                      device, services.processes.of(device)));
         }
         return download_shard(request, services, array_of(request, services), device);
       }},
      {"PUT", "/v1/arrays/{id}/shards/{device}", "putShardData", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         return put_shard(request, services, array_of(request, services), device_of(request));
       }},
      {"POST", "/v1/arrays/{id}:compare", "compareArrays", BodyPolicy::kJson, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return compare_arrays(request, services, array_of(request, services)); }},
      {"POST", "/v1/arrays/{id}:move", "moveArray", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) {
         const RepeatedRequest repeated(request, services, "");
         if (repeated.made()) return made_before(repeated, request, services);
         const arrays::ArrayRef array = array_of(request, services);
         check_condition(request, *array);
         return described(*services.arrays.move(array, repeated.key()), 201);
       }},
      {"GET", "/v1/arrays/{id}/sharding.txt", "getShardingText", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return text(200, picture_text(array_of(request, services)->layout())); }},
      {"GET", "/v1/arrays/{id}/sharding.svg", "getShardingSvg", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) {
         return content(200, "image/svg+xml", picture_svg(array_of(request, services)->layout()));
       }},
  };
}

}  // namespace meshd::api
