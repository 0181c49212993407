// Arrays put together from parts: /v1/arrays:assemble and PUT of a shard.
#include <algorithm>
#include <cstring>

#include "api/codecs/array_document.h"
#include "api/codecs/json.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/value.h"
#include "api/routes/arrays/array_parts.h"
#include "api/routes/arrays/upload_body.h"
#include "api/routes/routes.h"
#include "service/arrays/assembly.h"
#include "service/jobs/pulled_parts.h"

namespace meshd::api {
namespace {

constexpr JsonLimits kPartLimits{64, 64'000'000};

tensor::BufferRef to_buffer(std::span<const std::byte> bytes, tensor::BufferPool& pool) {
  tensor::BufferRef buffer = pool.allocate(static_cast<int64_t>(bytes.size()));
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return buffer;
}

std::vector<arrays::Part> read_parts(const Json& list, tensor::BufferPool& pool, core::Diagnostics& wrong) {
  std::vector<arrays::Part> out;
  if (!list.is_array()) wrong.add("/shards", "expected a list, got " + std::string(list.kind_name()));
  for (size_t i = 0; i < list.size() && has_room(wrong); ++i) {
    const std::string pointer = "/shards/" + std::to_string(i);
    const Json item = list.at(i);
    ObjectReader reader(item, pointer, wrong);
    arrays::Part part;
    if (const auto device = reader.integer("device", 0, INT32_MAX)) part.devices = {*device};
    if (const auto devices = reader.integers("devices")) {
      if (!part.devices.empty()) wrong.add(pointer + "/devices", "stands beside device; give one or the other");
      part.devices = *devices;
    }
    if (const Json* value = reader.field("value")) {
      if (auto read = read_value(*value, nullptr, pointer + "/value", wrong)) {
        part.type = read->type;
        part.bytes = to_buffer(read->bytes, pool);
      }
    } else {
      reader.missing("value");
    }
    reader.finish();
    out.push_back(std::move(part));
  }
  return out;
}

Response assemble(Request& request, Services& services) {
  const Json body = Json::parse(request.body().read_all(body_limit(BodyPolicy::kInline)), kPartLimits);
  core::Diagnostics wrong;
  ObjectReader reader(body, "", wrong);
  const auto shape = reader.integers("shape");
  if (reader.field("shape") == nullptr) reader.missing("shape");
  const auto mesh_id = reader.string("mesh");
  if (reader.field("mesh") == nullptr) reader.missing("mesh");
  const auto dtype_name = reader.string("dtype");
  std::optional<jobs::NamedSpec> spec;
  if (const Json* given = reader.field("spec")) {
    Json holder;
    holder.value = JsonObject{{"spec", *given}};
    spec = read_spec(holder, "", wrong);
  }
  const auto name = reader.string("name");
  const auto session = reader.string("session");
  const auto durability = reader.word("durability", {"durable", "memory"});
  const auto order = reader.word("order", {"keyed", "local"});
  const auto process = reader.integer("as_process", 0, INT32_MAX);
  const auto pull = reader.word("pull", {"each", "batch"});
  const Json* list = reader.field("shards");
  if (pull && !session) wrong.add("/session", "missing: a session is asked for the parts that are pulled");
  if (pull && list != nullptr) wrong.add("/pull", "stands beside shards; give one or the other");
  std::vector<arrays::Part> parts;
  if (list != nullptr) parts = read_parts(*list, services.pool, wrong);
  if (list == nullptr && !dtype_name) reader.missing("dtype");
  reader.finish();
  arrays::NewArray wanted;
  if (dtype_name) {
    const auto dtype = tensor::dtype_from_name(*dtype_name);
    if (!dtype) wrong.add("/dtype", quote(*dtype_name) + " is no dtype that is known here");
    wanted.type.dtype = dtype.value_or(tensor::DType::kFloat32);
  }
  wrong.throw_if_any("invalid_array");

  wanted.type.dims = *shape;
  if (std::any_of(shape->begin(), shape->end(), [](int64_t size) { return size < 0; }))
    throw core::Error("invalid_array", "/shape: sizes are 0 or more");
  wanted.principal = request.principal;
  wanted.name = name.value_or("");
  if (session) wanted.session = services.sessions.get(*session, request.principal).id;
  if (durability && *durability == "memory") wanted.durability = storage::Durability::kMemory;
  const registry::StoredMesh stored = services.meshes.get(*mesh_id, request.principal);
  if (stored.mesh.device_ids.empty())
    throw core::Error("invalid_array", "an abstract mesh has no devices to put an array on");
  wanted.mesh_id = stored.id;
  wanted.sharding = sharding_on(std::make_shared<const mesh::Mesh>(stored.mesh), spec.value_or(jobs::NamedSpec{}),
                                static_cast<int64_t>(shape->size()));
  if (!parts.empty() && !dtype_name) wanted.type.dtype = parts.front().type.dtype;

  // A process brings what its own devices hold; the others' parts are put later.
  std::vector<int64_t> devices = stored.mesh.device_ids;
  if (process) devices = mesh::local_devices(stored.mesh, services.processes, *process);
  arrays::ArrayRef array = services.arrays.begin(wanted);
  if (list != nullptr) {
    arrays::assign_devices(parts, devices,
                           order.value_or("keyed") == "local" ? arrays::PartOrder::kLocal : arrays::PartOrder::kKeyed);
    arrays::check_parts(parts, array->layout());
    if (!parts.empty() && parts.front().type.dtype != wanted.type.dtype)
      throw core::Error("invalid_array", "dtype: the parts are " + std::string(tensor::name(parts.front().type.dtype)));
  }
  services.arrays.announce(array);
  try {
    for (const arrays::Part& part : parts) {
      for (const int64_t device : part.devices) {
        arrays::put_part(services.arrays, array, device, part.type, part.bytes);
      }
    }
    if (pull) {
      jobs::pull_parts(services.callbacks, wanted.session, *array, devices,
                       *pull == "batch" ? jobs::Pull::kBatch : jobs::Pull::kEach);
    }
  } catch (...) {
    services.arrays.remove(array);  // its client does not learn its id
    throw;
  }
  return json(201, array_document(*array))
      .with("ETag", array_etag(*array))
      .with("Location", "/v1/arrays/" + array->info().id);
}

}  // namespace

Response put_shard(Request& request, Services& services, const arrays::ArrayRef& array, int64_t device) {
  static constexpr std::string_view kKnown[] = {"replicas"};
  request.query.require_known(kKnown);
  const std::string_view replicas = request.query.get("replicas").value_or("one");
  if (replicas != "one" && replicas != "all") throw core::Error("invalid_query", "replicas: expected one or all");
  const sharding::Layout& layout = array->layout();
  const auto place = std::find_if(layout.device_shards.begin(), layout.device_shards.end(),
                                  [&](const sharding::DeviceShard& p) { return p.device == device; });
  if (place == layout.device_shards.end())
    throw core::Error("not_found", "array '" + array->info().id + "' has no shard on device " + std::to_string(device));
  const tensor::TensorType expected{array->info().type.dtype, layout.shard_actual_dims(place->shard)};
  const arrays::PartOnItsWay on_its_way(services.arrays, array);
  const ArrayBody body = open_array_body(request, std::nullopt, std::nullopt, &expected);
  if (body.type != expected) {
    throw core::Error("invalid_array",
                      "the shard is " + tensor::to_string(expected) + ", the body has " + tensor::to_string(body.type));
  }
  // Fresh memory is not touched before there are bytes for it: a head alone costs none.
  const tensor::BufferRef bytes = services.pool.allocate(tensor::byte_count(expected));
  read_dense(*body.reader, expected, body.order, bytes->bytes());
  body.reader->expect_end();
  arrays::put_part(services.arrays, array, device, body.type, bytes,
                   replicas == "all" ? arrays::Replicas::kAll : arrays::Replicas::kOne);
  jobs::end_pull(services.callbacks, *array);
  return json(200, array_document(*array)).with("ETag", array_etag(*array));
}

std::vector<Route> array_part_routes(Services& services) {
  return {
      {"POST", "/v1/arrays:assemble", "assembleArray", BodyPolicy::kInline, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return assemble(request, services); }},
      {"POST", "/v1/shardings:resolve", "resolveSharding", BodyPolicy::kJson, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return resolve_sharding(request, services); }},
  };
}

}  // namespace meshd::api
