// Arrays put together from parts: /v1/arrays:assemble and PUT of a shard.
#include <fmt/core.h>

#include <algorithm>

#include "api/codecs/array_document.h"
#include "api/codecs/mesh_choice.h"
#include "api/codecs/mesh_codec.h"
#include "api/codecs/value.h"
#include "api/routes/arrays/array_parts.h"
#include "api/routes/arrays/upload_body.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "service/arrays/assembly.h"
#include "service/jobs/execution/pulled_parts.h"

namespace meshd::api {
namespace {

// What some devices hold.
struct PartInput {
  std::optional<int64_t> device;
  std::optional<std::vector<int64_t>> devices;
  const Json* value = nullptr;
};

struct AssembleInput {
  std::vector<int64_t> shape;
  MeshChoice mesh;
  std::optional<tensor::DType> dtype;
  std::optional<PartitionSpec> spec;
  std::optional<std::string> name, session, durability, order, pull;
  std::optional<int64_t> as_process;
  const Json* shards = nullptr;
};

}  // namespace

template <>
Schema<PartInput> make_schema() {
  return {"PartInput",
          {{"device", &PartInput::device, {.low = 0, .high = INT32_MAX}},
           {"devices", &PartInput::devices, {.low = 0, .high = kLargestExact - 1}},
           {"value", &PartInput::value, {.required = true, .like = json_type<ValueInput>}}}};
}

template <>
Schema<AssembleInput> make_schema() {
  using In = AssembleInput;
  return {"AssembleInput",
          {{"shape", &In::shape, {.low = 0, .high = kLargestExact - 1}},
           {"mesh", &In::mesh, {.required = true}},
           {"dtype", &In::dtype},
           {"spec", &In::spec},
           {"name", &In::name},
           {"session", &In::session},
           {"durability", &In::durability, {.words = kDurabilities}},
           {"order", &In::order, {.words = {"keyed", "local"}}},
           {"as_process", &In::as_process, {.low = 0, .high = INT32_MAX}},
           {"pull", &In::pull, {.words = {"each", "batch"}}},
           {"shards", &In::shards, {.like = json_type<std::vector<PartInput>>}}}};
}

const SchemaBase& assemble_schema() { return schema<AssembleInput>(); }

namespace {

std::vector<arrays::Part> read_parts(const Json& list, tensor::BufferPool& pool, core::Diagnostics& wrong) {
  std::vector<arrays::Part> out;
  each_entry(list, "/shards", wrong, [&](size_t, const Json& item, const std::string& pointer) {
    auto in = read_json<PartInput>(item, pointer, wrong);
    arrays::Part part;
    if (in.device && in.devices) wrong.add(pointer + "/devices", "is given beside device; give one or the other");
    if (in.device) part.devices = {*in.device};
    if (in.devices) part.devices = std::move(*in.devices);
    if (in.value != nullptr) {
      if (auto read = read_value(*in.value, nullptr, pool, pointer + "/value", wrong)) {
        part.type = std::move(read->type);
        part.bytes = std::move(read->buffer);
      }
    }
    out.push_back(std::move(part));
  });
  return out;
}

Response assemble(Request& request, Services& services) {
  std::string sent = body_text(request, BodyPolicy::kInline);
  const RepeatedRequest repeated(request, services, sent);
  if (repeated.made())
    return repeated.again([&] { return described(*services.arrays.find(*repeated.made(), request.principal), 201); });
  const Json body = parse_body(request, std::move(sent), BodyPolicy::kInline);
  core::Diagnostics wrong;
  const auto in = read_json<AssembleInput>(body, "", wrong);
  if (in.pull && body.find("session") == nullptr)
    wrong.add("/session", "missing: a session is asked for the parts that are pulled");
  if (in.pull && in.shards != nullptr) wrong.add("/pull", "is given beside shards; give one or the other");
  std::vector<arrays::Part> parts;
  if (in.shards != nullptr) parts = read_parts(*in.shards, services.pool, wrong);
  if (in.shards == nullptr && body.find("dtype") == nullptr) wrong.add("/dtype", "is missing");
  wrong.throw_if_any("invalid_array");

  arrays::NewArray wanted;
  wanted.type = {in.dtype ? *in.dtype : parts.empty() ? tensor::DType::kFloat32 : parts.front().type.dtype, in.shape};
  wanted.principal = request.principal;
  wanted.key = repeated.key();
  wanted.name = in.name.value_or("");
  if (in.session) wanted.session = services.sessions.get(*in.session, request.principal).id;
  if (in.durability) wanted.durability = durability_of(*in.durability);
  const registry::StoredMesh stored =
      chosen_mesh(in.mesh, "/mesh", services.meshes, request.principal, services.engine.options().device_count);
  if (stored.mesh.device_ids.empty())
    throw core::Error("invalid_array", "an abstract mesh has no devices to put an array on");
  wanted.mesh_id = stored.id;
  wanted.sharding =
      sharding_on(std::make_shared<const mesh::Mesh>(stored.mesh), named_spec(in.spec), wanted.type.rank());

  // A process sends the parts of its own devices; the others' parts follow later.
  std::vector<int64_t> devices = stored.mesh.device_ids;
  if (in.as_process) devices = mesh::local_devices(stored.mesh, services.processes, *in.as_process);
  arrays::ArrayRef array = services.arrays.begin(wanted);
  if (in.shards != nullptr) {
    arrays::assign_devices(parts, devices, in.order == "local" ? arrays::PartOrder::kLocal : arrays::PartOrder::kKeyed);
    arrays::check_parts(parts, array->layout());
    if (!parts.empty() && parts.front().type.dtype != wanted.type.dtype)
      throw core::Error("invalid_array",
                        fmt::format("dtype: the parts are {}", tensor::name(parts.front().type.dtype)));
  }
  services.arrays.announce(array);
  try {
    for (const arrays::Part& part : parts) {
      for (const int64_t device : part.devices) {
        arrays::put_part(services.arrays, array, device, part.type, part.bytes);
      }
    }
    if (in.pull) {
      jobs::pull_parts(services.callbacks, wanted.session, *array, devices,
                       *in.pull == "batch" ? jobs::Pull::kBatch : jobs::Pull::kEach);
    }
    services.arrays.store_key(array);
  } catch (...) {
    services.arrays.remove(array);  // its client does not learn its id
    throw;
  }
  return described(*array, 201);
}

}  // namespace

Response described(arrays::Array& array, int status) {
  const ArrayDocument document(array);
  return json_of(status, document).with("ETag", document.etag()).with("Location", "/v1/arrays/" + array.info().id);
}

Response put_shard(Request& request, Services& services, const arrays::ArrayRef& array, int64_t device) {
  request.query.require_known({"replicas"});
  const std::string_view replicas = request.query.get("replicas").value_or("one");
  if (replicas != "one" && replicas != "all") throw core::Error("invalid_query", "replicas: expected one or all");
  const sharding::Layout& layout = array->layout();
  const auto place = std::find_if(layout.device_shards.begin(), layout.device_shards.end(),
                                  [&](const sharding::DeviceShard& p) { return p.device == device; });
  if (place == layout.device_shards.end())
    throw core::Error("not_found", fmt::format("array '{}' has no shard on device {}", array->info().id, device));
  const tensor::TensorType expected{array->info().type.dtype, layout.shard_actual_dims(place->shard)};
  const arrays::PartOnItsWay on_its_way(services.arrays, array);
  const ArrayBody body = open_array_body(request, services.pool, std::nullopt, std::nullopt, &expected);
  if (body.type != expected) {
    throw core::Error("invalid_array", fmt::format("the shard is {}, the body has {}", tensor::to_string(expected),
                                                   tensor::to_string(body.type)));
  }
  const tensor::BufferRef bytes = read_dense_body(body, services.pool);
  arrays::put_part(services.arrays, array, device, body.type, bytes,
                   replicas == "all" ? arrays::Replicas::kAll : arrays::Replicas::kOne);
  jobs::end_pull(services.callbacks, *array);
  const ArrayDocument now(*array);
  return json_of(200, now).with("ETag", now.etag());
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
