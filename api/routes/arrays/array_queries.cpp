// Queries about arrays and shardings that change nothing: what a sharding means, whether two arrays are alike.
#include <fmt/core.h>

#include "api/codecs/array_document.h"
#include "api/codecs/explain/layout_picture.h"
#include "api/codecs/mesh_choice.h"
#include "api/codecs/mesh_codec.h"
#include "api/http/router.h"
#include "api/routes/arrays/array_parts.h"
#include "api/routes/routes.h"
#include "service/arrays/compare.h"
#include "service/mesh/positions.h"
#include "service/sharding/parts.h"
#include "service/tensor/sizes.h"

namespace meshd::api {
namespace {

struct ShardingQuery {
  std::optional<std::vector<int64_t>> shape, parts, local_parts, local_shape;
  std::optional<MeshChoice> mesh;
  std::optional<PartitionSpec> spec;
  std::optional<int64_t> num_partitions;
};

// What it means.
struct ResolvedSharding {
  std::vector<int64_t> shape;
  sharding::TensorSharding sharding;
  std::optional<std::vector<int64_t>> parts, local_parts;  ///< as in the request
  int64_t positions = 0;
  int64_t first = 0;  ///< position of the page's first shard
  sharding::Layout layout;
  std::vector<ShardDocument> shards;
};

struct CompareInput {
  std::string array;
  std::optional<std::string> mode;
};

struct Comparison {
  std::string mode;
  bool equal = false;
};

const std::vector<std::string_view> kModes{"bits", "placement"};

std::optional<std::vector<int64_t>> local_parts_of(const ResolvedSharding& doc) {
  return doc.parts ? std::optional(doc.local_parts.value_or(*doc.parts)) : std::nullopt;
}

}  // namespace

template <>
Schema<ShardingQuery> make_schema() {
  using In = ShardingQuery;
  const Rules sizes{.low = 0, .high = kLargestExact - 1};
  const Rules parts{.low = 1, .high = mesh::kMaxPositions};
  return {"ShardingQuery",
          {{"shape", &In::shape, sizes},
           {"mesh", &In::mesh},
           {"spec", &In::spec},
           {"parts", &In::parts, parts},
           {"local_parts", &In::local_parts, parts},
           {"local_shape", &In::local_shape, sizes},
           {"num_partitions", &In::num_partitions, {.low = 1, .high = INT32_MAX}}}};
}

template <>
Schema<ResolvedSharding> make_schema() {
  using Doc = ResolvedSharding;
  const Rules sizes{.low = 0, .high = kLargestExact - 1};
  const Rules parts{.low = 1, .high = mesh::kMaxPositions};
  return {"ResolvedSharding",
          {{"shape", &Doc::shape, sizes},
           {"sharding",
            [](const Doc& doc) { return sharding_document(doc.sharding, static_cast<int64_t>(doc.shape.size())); }},
           {"parts", [](const Doc& doc) -> std::span<const int64_t> { return doc.layout.part_counts; }, parts},
           {"text", [](const Doc& doc) { return sharding::to_text(doc.layout.part_counts); }},
           {"shard_shape", [](const Doc& doc) -> std::span<const int64_t> { return doc.layout.shard_dims; }, sizes},
           {"shard_count", [](const Doc& doc) { return doc.layout.shard_count; }, {.low = 0}},
           {"is_fully_replicated", [](const Doc& doc) { return doc.sharding.is_fully_replicated(); }},
           {"op_sharding",
            [](const Doc& doc) -> std::optional<std::string> {
              const auto cut =
                  doc.sharding.is_fully_replicated() ? sharding::Parts() : sharding::Parts(doc.layout.part_counts);
              // XLA's notation exists where every device has a part of its own, numbered in order.
              if (cut && doc.layout.shard_count != doc.positions) return std::nullopt;
              return sharding::to_op_sharding(cut);
            }},
           {"local_parts", local_parts_of, parts},
           {"local_shape",
            [](const Doc& doc) {
              const auto local = local_parts_of(doc);
              return local ? std::optional(sharding::local_shape(doc.shape, *doc.parts, *local)) : std::nullopt;
            },
            sizes},
           {"shards", &Doc::shards},
           {"next",
            [](const Doc& doc) {
              const int64_t next = doc.first + static_cast<int64_t>(doc.shards.size());
              return or_null(next < doc.positions ? std::optional(std::to_string(next)) : std::nullopt);
            }},
           {"picture", [](const Doc& doc) {
              return doc.positions > kMaxDrawnPositions ? undrawn_text(doc.layout, doc.positions)
                                                        : picture_text(sharding::make_layout(doc.shape, doc.sharding));
            }}}};
}

template <>
Schema<CompareInput> make_schema() {
  return {"CompareInput", {{"array", &CompareInput::array}, {"mode", &CompareInput::mode, {.words = kModes}}}};
}

template <>
Schema<Comparison> make_schema() {
  return {"Comparison", {{"mode", &Comparison::mode, {.words = kModes}}, {"equal", &Comparison::equal}}};
}

std::vector<const SchemaBase*> array_query_schemas() {
  return {&schema<ShardingQuery>(), &schema<ResolvedSharding>(), &schema<CompareInput>(), &schema<Comparison>()};
}

namespace {

// The shape and the sharding of the request.
ResolvedSharding read_sharding_query(const Json& body, Services& services, const std::string& principal) {
  core::Diagnostics wrong;
  auto in = read_json<ShardingQuery>(body, "", wrong);
  wrong.throw_if_any("invalid_spec");
  ResolvedSharding out;
  auto& shape = in.shape;
  if (!shape && !in.local_shape) wrong.add("/shape", "is missing (or local_shape beside parts and local_parts)");
  if (in.mesh && in.parts)
    wrong.add("/parts", "integer specs count devices 0, 1, 2, ... and take no mesh; give spec beside a mesh");
  if (!in.mesh && in.spec) wrong.add("/spec", "needs a mesh");
  if (in.local_shape && (!in.parts || !in.local_parts)) wrong.add("/local_shape", "needs parts and local_parts");
  wrong.throw_if_any("invalid_spec");
  if (in.local_shape) {
    const auto whole = sharding::global_shape(*in.local_shape, *in.parts, *in.local_parts);
    if (shape && *shape != whole) throw core::Error("invalid_spec", "/shape: disagrees with local_shape");
    shape = whole;
  }
  out.parts = in.parts;
  out.local_parts = in.local_parts;
  // Any dtype: what matters is that its sizes can be computed with.
  tensor::require_sizes({tensor::DType::kInt8, *shape});
  out.shape = *shape;
  const auto rank = static_cast<int64_t>(out.shape.size());
  if (in.mesh) {
    const auto stored =
        chosen_mesh(*in.mesh, "/mesh", services.meshes, principal, services.engine.options().device_count);
    out.sharding = sharding_on(std::make_shared<const mesh::Mesh>(stored.mesh), named_spec(in.spec), rank);
  } else {
    const int64_t total = out.parts ? sharding::part_total(*out.parts) : in.num_partitions.value_or(1);
    const int64_t devices = services.engine.options().device_count;
    if (total < 1 || total > devices) {
      throw core::Error("too_few_devices",
                        fmt::format("requires {} devices, only {} devices are available", total, devices));
    }
    out.sharding = sharding::parts_sharding(out.parts, "parts", sharding::parts_mesh(total), rank);
  }
  return out;
}

// Where a page of positions begins and how long it is; a cursor is the number of its first position.
std::pair<int64_t, int64_t> page_of_positions(Request& request, int64_t positions) {
  const storage::PageRequest page = page_of(request);
  const auto first = page.cursor.empty() ? 0 : whole_number(page.cursor);
  if (!first || (!page.cursor.empty() && *first >= positions))
    throw core::Error("invalid_query", "cursor is not one that this list gave");
  return {*first, page.limit};
}

}  // namespace

Response resolve_sharding(Request& request, Services& services) {
  const Json body = body_json(request, BodyPolicy::kJson);
  ResolvedSharding out = read_sharding_query(body, services, request.principal);
  // A mesh may have a million positions: what is listed by position comes in pages.
  out.positions = out.sharding.mesh->position_count();
  const auto [first, limit] = page_of_positions(request, out.positions);
  out.first = first;
  out.layout = sharding::make_layout(out.shape, out.sharding, {first, limit});
  out.shards = shard_documents(out.layout, services.processes, {}, "");
  return json_of(200, out);
}

Response compare_arrays(Request& request, Services& services, const arrays::ArrayRef& array) {
  const auto in = read_body<CompareInput>(request);
  const arrays::ArrayRef other = services.arrays.find(in.array, request.principal);
  if (!in.mode) {
    throw core::Error("not_implemented",
                      R"(equality of arrays says nothing by itself; write an explicit comparison: "mode": "bits" for )"
                      R"(the same type and bytes, "placement" for the same type, mesh and sharding)");
  }
  const auto likeness = *in.mode == "placement" ? arrays::Likeness::kPlacement : arrays::Likeness::kBits;
  return json_of(200, Comparison{*in.mode, arrays::are_alike(services.arrays, array, other, likeness)});
}

}  // namespace meshd::api
