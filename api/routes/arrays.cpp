// /v1/arrays: upload, metadata, data, shards, reshard, delete.
#include <charconv>

#include "api/codecs/array_document.h"
#include "api/codecs/json.h"
#include "api/codecs/mesh_codec.h"
#include "api/routes/array_download.h"
#include "api/routes/array_upload.h"
#include "api/routes/routes.h"
#include "service/jobs/binding.h"
#include "service/kernels/movement.h"

namespace meshd::api {
namespace {

Response described(arrays::Array& array, int status) {
  return json(status, array_document(array))
      .with("ETag", array_etag(array))
      .with("Location", "/v1/arrays/" + array.info().id);
}

void check_condition(const Request& request, arrays::Array& array) {
  const auto wanted = request.headers.get("If-Match");
  if (wanted && *wanted != "*" && *wanted != array_etag(array)) {
    throw core::Error("precondition_failed",
                      "the array is at " + array_etag(array) + ", If-Match says " + std::string(*wanted));
  }
}

int64_t device_of(const Request& request) {
  const std::string& text = request.capture("device");
  int64_t device = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), device);
  if (error != std::errc{} || end != text.data() + text.size() || device < 0)
    throw core::Error("not_found", "'" + text + "' is no device");
  return device;
}

// A new array with the same values, cut otherwise; the old one stays.
Response reshard(Request& request, Services& services) {
  const arrays::ArrayRef from = services.arrays.find(request.capture("id"), request.principal);
  const Json body = Json::parse(request.body().read_all(body_limit(BodyPolicy::kJson)));
  core::Diagnostics wrong;
  ObjectReader reader(body, "", wrong);
  const auto mesh_id = reader.string("mesh");
  if (!mesh_id && reader.field("mesh") == nullptr) reader.missing("mesh");
  std::optional<jobs::NamedSpec> spec;
  if (const Json* given = reader.field("spec")) {
    Json holder;
    holder.value = JsonObject{{"spec", *given}};
    spec = read_spec(holder, "", wrong);
  } else {
    reader.missing("spec");
  }
  const auto durability = reader.word("durability", {"durable", "memory"});
  const auto name = reader.string("name");
  reader.finish();
  wrong.throw_if_any("invalid_request");

  const registry::StoredMesh stored = services.meshes.get(*mesh_id, request.principal);
  mesh::Mesh target = stored.mesh;
  std::string target_id = stored.id;
  // An abstract mesh takes its devices from the operand, which must lie on a mesh of the same axes (behaviour A10).
  if (target.device_ids.empty()) {
    const mesh::Mesh& own = *from->info().sharding.mesh;
    if (!from->info().committed || own.axes != target.axes) {
      throw core::Error("invalid_array", "the array lies on " + mesh::to_text(own) + ", the abstract mesh is " +
                                             mesh::to_text(target) + "; they must have the same axes");
    }
    target = own;
    target_id = from->info().mesh_id;
  }
  auto mesh = std::make_shared<const mesh::Mesh>(target);
  const tensor::TensorType& type = from->info().type;
  if (static_cast<int64_t>(spec->dims.size()) > type.rank()) {
    throw core::Error("invalid_spec", "a spec of " + std::to_string(spec->dims.size()) +
                                          " dimensions is only valid for values of rank at least " +
                                          std::to_string(spec->dims.size()));
  }
  sharding::TensorSharding sharding = sharding::fully_replicated("mesh", mesh, type.rank());
  for (size_t d = 0; d < spec->dims.size(); ++d) {
    for (const std::string& axis_name : spec->dims[d]) {
      const auto axis = mesh->axis_index(axis_name);
      if (!axis)
        throw core::Error("invalid_spec", "axis '" + axis_name + "' is not an axis of " + mesh::to_text(*mesh));
      sharding.dims[d].axes.push_back({*axis, 1, 0});
    }
  }
  sharding::verify(sharding, type.rank());

  arrays::NewArray wanted;
  wanted.principal = request.principal;
  wanted.session = from->info().session;
  wanted.name = name.value_or(from->info().name);
  wanted.type = type;
  wanted.mesh_id = target_id;
  wanted.sharding = sharding;
  wanted.durability = durability
                          ? (*durability == "memory" ? storage::Durability::kMemory : storage::Durability::kDurable)
                          : from->info().durability;
  const arrays::ArrayRef to = services.arrays.begin(wanted);
  const arrays::ShardBuffers source = services.arrays.shards(from);
  arrays::ShardBuffers shards = services.arrays.allocate(*to);
  for (const sharding::BlockCopy& copy : sharding::reshard_copies(from->layout(), to->layout())) {
    kernels::copy_block(shards[static_cast<size_t>(copy.to_shard)]->data(), to->layout().shard_dims, copy.to_start,
                        source[static_cast<size_t>(copy.from_shard)]->data(), from->layout().shard_dims,
                        copy.from_start, copy.extent, tensor::size_bytes(type.dtype));
  }
  services.arrays.publish(to, std::move(shards));
  return described(*to, 201);
}

}  // namespace

std::vector<Route> array_routes(Services& services) {
  return {
      {"POST", "/v1/arrays", "createArray", BodyPolicy::kBulk, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) { return described(*upload_array(request, services), 201); }},
      {"GET", "/v1/arrays", "listArrays", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         storage::ArrayFilter filter;
         filter.session = std::string(request.query.get("session").value_or(""));
         filter.name = std::string(request.query.get("name").value_or(""));
         const auto page = services.arrays.list(request.principal, filter, page_of(request, {"session", "name"}));
         std::vector<std::string> items;
         for (const auto& array : page.items) items.push_back(array_document(*array));
         return list_response(request, items, page.next);
       }},
      {"GET", "/v1/arrays/{id}", "getArray", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         return described(*services.arrays.find(request.capture("id"), request.principal), 200);
       }},
      {"DELETE", "/v1/arrays/{id}", "deleteArray", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         const arrays::ArrayRef array = services.arrays.find(request.capture("id"), request.principal);
         check_condition(request, *array);
         services.arrays.remove(array);
         return no_content();
       }},
      {"POST", "/v1/arrays/{id}:delete", "deleteArrayByPost", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         const arrays::ArrayRef array = services.arrays.find(request.capture("id"), request.principal);
         check_condition(request, *array);
         services.arrays.remove(array);
         return no_content();
       }},
      {"POST", "/v1/arrays/{id}:reshard", "reshardArray", BodyPolicy::kJson, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) { return reshard(request, services); }},
      {"GET", "/v1/arrays/{id}/data", "getArrayData", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         return download_array(request, services, services.arrays.find(request.capture("id"), request.principal));
       }},
      {"GET", "/v1/arrays/{id}/shards", "listShards", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         return list_response(request, shard_documents(*services.arrays.find(request.capture("id"), request.principal)),
                              "");
       }},
      {"GET", "/v1/arrays/{id}/shards/{device}", "getShardData", BodyPolicy::kNone, RunOn::kWorker, Access::kPrincipal,
       [&services](Request& request) {
         return download_shard(request, services, services.arrays.find(request.capture("id"), request.principal),
                               device_of(request));
       }},
  };
}

}  // namespace meshd::api
