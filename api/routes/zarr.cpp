// GET /v1/arrays/{id}/v{n}/zarr/...: an array as a read-only Zarr array, versions 2 and 3 side by side. The address
// contains the array's version, so its contents never change.
#include <fmt/core.h>

#include "api/codecs/array_document.h"
#include "api/codecs/files/zarr.h"
#include "api/fields/ranges.h"
#include "api/routes/arrays/array_stream.h"
#include "api/routes/routes.h"
#include "service/arrays/region.h"

namespace meshd::api {
namespace {

int64_t read_version(const std::string& text) {
  const auto version = text.starts_with('0') ? std::nullopt : whole_number(text);
  if (!version) throw core::Error("not_found", "'v" + text + "' is no version");
  return *version;
}

// A shard with its padding, which is zero in a chunk.
Response send_chunk(Request& request, Services& services, const arrays::Array& array, arrays::ReadableShards shard,
                    int64_t number, const std::string& etag) {
  const sharding::Layout& layout = array.layout();
  const auto reader = counted_reader(page_memory(services), arrays::unsharded_layout(layout.shard_dims),
                                     array.info().type.dtype, std::move(shard), arrays::full_slices(layout.shard_dims));
  const tensor::Dims actual = layout.shard_actual_dims(number);
  if (actual != layout.shard_dims) reader->zero_beyond(actual);
  ArrayStream stream;
  stream.add(reader);
  return std::move(stream).respond(request, "application/octet-stream", etag);
}

Response get_zarr(Request& request, Services& services) {
  request.query.require_known({});
  const arrays::ArrayRef array = services.arrays.find(request.capture("id"), request.principal);
  const int64_t version = read_version(request.capture("n"));
  const ZarrKey key = read_zarr_key(request.capture("path"), array->layout());
  if (key.kind == ZarrKey::Kind::kNone) {
    throw core::Error("not_found", fmt::format("array '{}' has no '{}' at version {}", array->info().id,
                                               request.capture("path"), version));
  }
  const arrays::ArrayStore::Opened now = services.arrays.open_at(array, version);
  const std::string etag = array_etag(array->info().id + "." + request.capture("path"), version);
  Response response;
  if (key.kind == ZarrKey::Kind::kChunk) {
    response = send_chunk(request, services, *array, now.shards.only(key.shard), key.shard, etag);
  } else {
    auto text =
        std::make_shared<const std::string>(key.kind == ZarrKey::Kind::kArray3   ? zarr3_document(*array, version)
                                            : key.kind == ZarrKey::Kind::kArray2 ? zarr2_document(*array)
                                                                                 : zarr2_attributes(*array, version));
    response = ranged(request, "application/json", {{std::as_bytes(std::span<const char>(*text))}, text}, etag);
  }
  // Data that is one principal's own stays out of shared caches.
  if (response.status < 300) {
    response.headers.set("Cache-Control", std::string(request.principal.empty() ? "public" : "private") +
                                              ", max-age=31536000, immutable");
  }
  return response;
}

}  // namespace

std::vector<Route> zarr_routes(Services& services) {
  return {
      {"GET", "/v1/arrays/{id}/v{n}/zarr/{path...}", "getZarr", BodyPolicy::kNone, RunOn::kWorker, Access::kReader,
       [&services](Request& request) { return get_zarr(request, services); }},
  };
}

}  // namespace meshd::api
