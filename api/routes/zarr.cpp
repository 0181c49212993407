// GET /v1/arrays/{id}/v{n}/zarr/...: an array as a read-only Zarr array, versions 2 and 3 side by side. The address
// holds the array's version, so what it answers never changes.
#include <charconv>

#include "api/codecs/array_document.h"
#include "api/codecs/zarr.h"
#include "api/http/ranges.h"
#include "api/routes/routes.h"
#include "service/arrays/region.h"

namespace meshd::api {
namespace {

int64_t read_version(const std::string& text) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc{} || end != text.data() + text.size() || version < 1 || text.front() == '0')
    throw core::Error("not_found", "'v" + text + "' is no version");
  return version;
}

// The bytes of a chunk: the shard itself, or where it is cut at the end of a dimension, filled up with zeros.
MemoryPieces chunk_bytes(const arrays::ArrayRef& array, const tensor::BufferRef& shard, int64_t number) {
  const tensor::Dims& full = array->layout().shard_dims;
  const tensor::Dims actual = array->layout().shard_actual_dims(number);
  const int64_t element_bytes = tensor::size_bytes(array->info().type.dtype);
  if (actual == full) return {{shard->bytes()}, shard};
  sharding::Layout whole;
  whole.global_dims = whole.shard_dims = full;
  whole.part_counts.assign(full.size(), 1);
  const std::vector<arrays::Slice> slices = arrays::whole_slices(actual);
  arrays::GatherReader reader(std::make_shared<const sharding::Layout>(whole), element_bytes, {shard}, slices);
  std::vector<std::byte> dense(static_cast<size_t>(reader.total_bytes()));
  reader.read(dense);
  auto padded = std::make_shared<std::vector<std::byte>>(
      static_cast<size_t>(core::checked_mul(tensor::element_count(full), element_bytes)));
  arrays::write_region(whole, element_bytes, slices, dense, [&](int64_t) { return padded->data(); });
  return {{*padded}, padded};
}

Response get_zarr(const Request& request, Services& services) {
  request.query.require_known({});
  const arrays::ArrayRef array = services.arrays.find(request.capture("id"), request.principal);
  const int64_t version = read_version(request.capture("n"));
  const ZarrKey key = read_zarr_key(request.capture("path"), array->layout());
  const auto current = array->state().with([](const arrays::Array::State& state) { return state.version; });
  if (key.kind == ZarrKey::Kind::kNone || version > current) {
    throw core::Error("not_found", "array '" + array->info().id + "' has no '" + request.capture("path") +
                                       "' at version " + std::to_string(version));
  }
  const arrays::ArrayStore::Snapshot now = services.arrays.snapshot(array);
  if (now.version != version) {
    throw core::Error("deleted_or_donated", "array '" + array->info().id + "' is at version " +
                                                std::to_string(now.version) + "; open it at v" +
                                                std::to_string(now.version) + "/zarr");
  }
  const std::string etag = array_etag(array->info().id + "." + request.capture("path"), version);
  Response response;
  if (key.kind == ZarrKey::Kind::kChunk) {
    const tensor::BufferRef& shard = now.shards[static_cast<size_t>(key.shard)];
    response = ranged(request, "application/octet-stream", chunk_bytes(array, shard, key.shard), etag);
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
