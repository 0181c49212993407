// GET /v1/arrays/{id}/v{n}/zarr/... and /v1/arrays/{id}/zarr/...: one array as a Zarr array, at a version, whose
// contents never change, or as it is now. Versions 2 and 3 of Zarr stand side by side; below v2/ or v3/ there is one of
// them.
#include "api/routes/zarr/zarr.h"

#include <fmt/core.h>

#include "api/codecs/array_document.h"
#include "api/codecs/files/zarr.h"
#include "api/fields/ranges.h"
#include "api/routes/arrays/array_stream.h"
#include "api/routes/routes.h"
#include "service/arrays/regions/region.h"

namespace meshd::api {
namespace {

using Kind = ZarrKey::Kind;

int64_t read_version(const std::string& text) {
  const auto version = text.starts_with('0') ? std::nullopt : whole_number(text);
  if (!version) throw core::Error("not_found", "'v" + text + "' is no version");
  return *version;
}

// A shard with its padding, which is zero in a chunk.
Response send_chunk(const Request& request, Services& services, const arrays::Array& array,
                    arrays::ReadableShards shard, int64_t number, const std::string& etag) {
  const sharding::Layout& layout = array.layout();
  const auto reader = counted_reader(page_memory(services), arrays::unsharded_layout(layout.shard_dims),
                                     array.info().type.dtype, std::move(shard), arrays::full_slices(layout.shard_dims));
  const tensor::Dims actual = layout.shard_actual_dims(number);
  if (actual != layout.shard_dims) reader->zero_beyond(actual);
  ArrayStream stream;
  stream.add(reader);
  return std::move(stream).respond(request, "application/octet-stream", etag);
}

// The key behind "v2/" or "v3/", if there is one of these.
ZarrKey key_of(std::string_view path) {
  if (path.starts_with("v3/")) return read_zarr_key(path.substr(3), ZarrFormats::k3);
  if (path.starts_with("v2/")) return read_zarr_key(path.substr(3), ZarrFormats::k2);
  return read_zarr_key(path, ZarrFormats::kBoth);
}

Response get_array(Request& request, Services& services, std::optional<int64_t> version) {
  request.query.require_known({});
  const arrays::ArrayRef array = services.arrays.find(request.capture("id"), request.principal);
  const ZarrKey key = key_of(request.capture("path"));
  const bool has_key = key.node.empty() && key.kind != Kind::kGroup2 && key.kind != Kind::kConsolidated2;
  std::optional<Response> response;
  if (has_key) response = send_zarr_array(request, services, array, key, version);
  if (!response) {
    throw core::Error("not_found",
                      fmt::format("array '{}' has no '{}' in Zarr", array->info().id, request.capture("path")));
  }
  // Data that is one principal's own stays out of shared caches.
  if (version && response->status < 300) {
    response->headers.set("Cache-Control", std::string(request.principal.empty() ? "public" : "private") +
                                               ", max-age=31536000, immutable");
  }
  return std::move(*response);
}

}  // namespace

Response send_zarr_document(const Request& request, std::string document, const std::string& etag) {
  auto text = std::make_shared<const std::string>(std::move(document));
  return ranged(request, "application/json",
                {{std::as_bytes(std::span<const char>(*text))}, text, static_cast<int64_t>(text->size())}, etag);
}

std::optional<Response> send_zarr_array(const Request& request, Services& services, const arrays::ArrayRef& array,
                                        const ZarrKey& key, std::optional<int64_t> version) {
  const bool is_chunk = key.kind == Kind::kChunk;
  const int64_t shard = is_chunk ? shard_at(key, array->layout()).value_or(-1) : -1;
  if (key.kind == Kind::kNone || (is_chunk && shard < 0)) return std::nullopt;
  const arrays::ArrayStore::Opened now = version ? services.arrays.open_at(array, *version)
                                                 : services.arrays.open(array, arrays::ArrayStore::ReadBy::kClient);
  const std::string etag = array_etag(fmt::format("{}.{}", array->info().id, request.capture("path")), now.version);
  if (is_chunk) return send_chunk(request, services, *array, now.shards.only(shard), shard, etag);
  return send_zarr_document(request,
                            key.kind == Kind::kNode3    ? zarr3_document(*array, now.version)
                            : key.kind == Kind::kArray2 ? zarr2_document(*array)
                                                        : zarr2_attributes(*array, now.version),
                            etag);
}

std::vector<Route> zarr_routes(Services& services) {
  return {
      {"GET", "/v1/arrays/{id}/v{n}/zarr/{path...}", "getZarr", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return get_array(request, services, read_version(request.capture("n"))); }},
      {"GET", "/v1/arrays/{id}/zarr/{path...}", "getCurrentZarr", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return get_array(request, services, std::nullopt); }},
      {"GET", "/v1/zarr/{format}/{path...}", "getZarrNode", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return get_zarr_node(request, services); }},
      {"PUT", "/v1/zarr/{format}/{path...}", "putZarrNode", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return put_zarr_node(request, services); }},
      {"DELETE", "/v1/zarr/{format}/{path...}", "deleteZarrNode", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return delete_zarr_node(request, services); }},
      {"POST", "/v1/zarr/{format}/{path...}:commit", "commitZarr", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return commit_zarr(request, services, request.capture("path")); }},
      {"POST", "/v1/zarr/{format}:commit", "commitAllZarr", BodyPolicy::kNone, RunOn::kWorker, Access::kUser,
       [&services](Request& request) { return commit_zarr(request, services, ""); }},
  };
}

}  // namespace meshd::api
