// Queries about arrays and shardings that change nothing: what a sharding means, whether two arrays are alike.
#include <charconv>
#include <cstring>

#include "api/codecs/array_views.h"
#include "api/codecs/json.h"
#include "api/codecs/layout_picture.h"
#include "api/codecs/mesh_codec.h"
#include "api/http/router.h"
#include "api/routes/arrays/array_parts.h"
#include "api/routes/routes.h"
#include "service/arrays/region.h"
#include "service/mesh/positions.h"
#include "service/sharding/parts.h"
#include "service/tensor/sizes.h"

namespace meshd::api {
namespace {

constexpr size_t kCompared = size_t{1} << 20;

struct ShardingQuery {
  std::vector<int64_t> shape;
  sharding::TensorSharding sharding;
  std::optional<std::vector<int64_t>> parts, local_parts;
};

ShardingQuery read_sharding_query(const Json& body, Services& services, const std::string& principal) {
  core::Diagnostics wrong;
  ObjectReader reader(body, "", wrong);
  ShardingQuery out;
  auto shape = reader.integers("shape", 0, INT64_MAX);
  const auto local_shape = reader.integers("local_shape", 0, INT64_MAX);
  const auto mesh_id = reader.string("mesh");
  out.parts = reader.integers("parts", 1, mesh::kMaxPositions);
  out.local_parts = reader.integers("local_parts", 1, mesh::kMaxPositions);
  std::optional<jobs::NamedSpec> spec;
  if (const Json* given = reader.field("spec")) {
    Json holder;
    holder.value = JsonObject{{"spec", *given}};
    spec = read_spec(holder, "", wrong);
  }
  const auto count = reader.integer("num_partitions", 1, INT32_MAX);
  reader.finish();
  if (!shape && !local_shape) wrong.add("/shape", "is missing (or local_shape beside parts and local_parts)");
  if (mesh_id && out.parts)
    wrong.add("/parts", "integer specs count devices 0, 1, 2, ... and take no mesh; give spec beside a mesh");
  if (!mesh_id && spec) wrong.add("/spec", "needs a mesh");
  if (local_shape && (!out.parts || !out.local_parts)) wrong.add("/local_shape", "needs parts and local_parts");
  wrong.throw_if_any("invalid_spec");
  if (local_shape) {
    const auto whole = sharding::global_shape(*local_shape, *out.parts, *out.local_parts);
    if (shape && *shape != whole) throw core::Error("invalid_spec", "/shape: disagrees with local_shape");
    shape = whole;
  }
  // Any dtype: what matters is that its sizes can be computed with.
  tensor::require_sizes({tensor::DType::kInt8, *shape});
  out.shape = *shape;
  const auto rank = static_cast<int64_t>(out.shape.size());
  if (mesh_id) {
    const auto stored = services.meshes.get(*mesh_id, principal);
    out.sharding = sharding_on(std::make_shared<const mesh::Mesh>(stored.mesh), spec.value_or(jobs::NamedSpec{}), rank);
  } else {
    const int64_t total = out.parts ? sharding::part_total(*out.parts) : count.value_or(1);
    if (total < 1 || total > services.engine.options().device_count) {
      throw core::Error("too_few_devices", "requires " + std::to_string(total) + " devices, only " +
                                               std::to_string(services.engine.options().device_count) +
                                               " devices are available");
    }
    out.sharding = sharding::parts_sharding(out.parts, "parts", sharding::parts_mesh(total), rank);
  }
  return out;
}

// Where a page of positions begins and how long it is; a cursor is the number of its first position.
std::pair<int64_t, int64_t> page_of_positions(const Request& request, int64_t positions) {
  const storage::PageRequest page = page_of(request);
  int64_t first = 0;
  const char* end = page.cursor.data() + page.cursor.size();
  if (!page.cursor.empty()) {
    const auto read = std::from_chars(page.cursor.data(), end, first);
    if (read.ec != std::errc{} || read.ptr != end || first < 0 || first >= positions)
      throw core::Error("invalid_query", "cursor is not one that this list gave");
  }
  return {first, page.limit};
}

}  // namespace

Response resolve_sharding(Request& request, Services& services) {
  const Json body = Json::parse(request.body().read_all(body_limit(BodyPolicy::kJson)));
  const ShardingQuery asked = read_sharding_query(body, services, request.principal);
  // A mesh may have a million positions: what is listed by position comes in pages.
  const int64_t positions = asked.sharding.mesh->position_count();
  const auto [first, limit] = page_of_positions(request, positions);
  const sharding::Layout layout = sharding::make_layout(asked.shape, asked.sharding, {first, limit});
  const std::string picture = positions > kMaxDrawnPositions
                                  ? undrawn_text(layout, positions)
                                  : picture_text(sharding::make_layout(asked.shape, asked.sharding));
  std::string shards;
  for (const std::string& document : device_shard_documents(layout, services.processes, {}, "")) {
    shards += (shards.empty() ? "" : ",") + document;
  }
  const sharding::Parts parts =
      asked.sharding.is_fully_replicated() ? std::nullopt : sharding::Parts(layout.part_counts);
  std::string out =
      "{\"shape\":" + integer_list(asked.shape) +
      ",\"sharding\":" + sharding_document(asked.sharding, static_cast<int64_t>(asked.shape.size()), false) +
      ",\"parts\":" + integer_list(layout.part_counts) + ",\"text\":" + quote(sharding::to_text(layout.part_counts)) +
      ",\"shard_shape\":" + integer_list(layout.shard_dims) + ",\"shard_count\":" + std::to_string(layout.shard_count) +
      ",\"is_fully_replicated\":" + (asked.sharding.is_fully_replicated() ? "true" : "false");
  // XLA's notation says it where every device has a part of its own, numbered in order.
  if (!parts || layout.shard_count == positions) out += ",\"op_sharding\":" + quote(sharding::to_op_sharding(parts));
  if (asked.parts) {
    const std::vector<int64_t> local = asked.local_parts.value_or(*asked.parts);
    out += ",\"local_parts\":" + integer_list(local) +
           ",\"local_shape\":" + integer_list(sharding::local_shape(asked.shape, *asked.parts, local));
  }
  const int64_t next = first + static_cast<int64_t>(layout.device_shards.size());
  return json(200, out + ",\"shards\":[" + shards +
                       "],\"next\":" + (next < positions ? quote(std::to_string(next)) : "null") +
                       ",\"picture\":" + quote(picture) + "}");
}

Response compare_arrays(Request& request, Services& services, const arrays::ArrayRef& array) {
  const Json body = Json::parse(request.body().read_all(body_limit(BodyPolicy::kJson)));
  core::Diagnostics wrong;
  ObjectReader reader(body, "", wrong);
  const auto other_id = reader.string("array");
  if (reader.field("array") == nullptr) reader.missing("array");
  const auto mode = reader.word("mode", {"bits", "placement"});
  reader.finish();
  wrong.throw_if_any("invalid_request");
  const arrays::ArrayRef other = services.arrays.find(*other_id, request.principal);
  if (!mode) {
    throw core::Error("not_implemented",
                      "equality of arrays says nothing by itself; write an explicit comparison: \"mode\": \"bits\" for "
                      "the same type and bytes, \"placement\" for the same type, mesh and sharding");
  }
  bool equal = array->info().type == other->info().type;
  if (*mode == "placement") {
    equal = equal && sharding::is_equivalent(array->info().sharding, other->info().sharding);
  } else if (equal) {
    const auto reader_of = [&](const arrays::ArrayRef& a) {
      return arrays::GatherReader({a, &a->layout()}, tensor::size_bytes(a->info().type.dtype),
                                  services.arrays.shards(a), arrays::whole_slices(a->info().type.dims));
    };
    arrays::GatherReader left = reader_of(array), right = reader_of(other);
    std::vector<std::byte> a(kCompared), b(kCompared);
    for (size_t got = left.read(a); equal && got > 0; got = left.read(a)) {
      const size_t same = right.read(std::span(b).first(got));
      equal = same == got && std::memcmp(a.data(), b.data(), got) == 0;
    }
  }
  return json(200, std::string("{\"mode\":") + quote(*mode) + ",\"equal\":" + (equal ? "true" : "false") + "}");
}

}  // namespace meshd::api
