#include "api/routes/array_download.h"

#include <algorithm>

#include "api/codecs/array_document.h"
#include "api/codecs/json.h"
#include "api/codecs/npy.h"
#include "api/codecs/value.h"
#include "api/ranges.h"
#include "service/arrays/region.h"

namespace meshd::api {
namespace {

// Answers of up to so many stretches of memory go out without a copy.
constexpr size_t kMostPieces = 4096;

enum class Form { kRaw, kNpy, kJson, kBase64 };

Form form_of(const Request& request) {
  if (const auto format = request.query.get("format")) {
    if (*format == "raw") return Form::kRaw;
    if (*format == "npy") return Form::kNpy;
    if (*format == "json") return Form::kJson;
    if (*format == "base64") return Form::kBase64;
    throw core::Error("invalid_query", "format: expected raw, npy, json or base64");
  }
  const std::string accept = request.headers.joined("Accept");
  if (accept.empty()) return Form::kRaw;
  // The first of the client's list that we have; q values order nothing that curl users write.
  size_t best = std::string::npos;
  Form form = Form::kRaw;
  const auto look = [&](std::string_view name, Form candidate) {
    const size_t at = accept.find(name);
    if (at < best) {
      best = at;
      form = candidate;
    }
  };
  look("*/*", Form::kRaw);
  look("application/*", Form::kRaw);
  look("application/octet-stream", Form::kRaw);
  look("application/x-npy", Form::kNpy);
  look("application/json", Form::kJson);
  // Generated clients prefer JSON, and the document's only JSON type here is that of refusals: they take what comes.
  look("application/problem+json", Form::kRaw);
  if (best == std::string::npos) {
    throw core::Error("not_acceptable",
                      "data is there as application/octet-stream, application/x-npy and application/json");
  }
  return form;
}

Response send(Request& request, const std::shared_ptr<const sharding::Layout>& layout, const tensor::TensorType& whole,
              const arrays::ShardBuffers& shards, const std::string& etag, const std::string& filename) {
  static constexpr std::string_view kKnown[] = {"format", "slice", "as_process"};
  request.query.require_known(kKnown);
  const Form form = form_of(request);
  const std::vector<arrays::Slice> slices = arrays::parse_slices(request.query.get("slice").value_or(""), whole.dims);
  const tensor::TensorType type{whole.dtype, arrays::slice_dims(slices)};
  auto reader = std::make_shared<arrays::GatherReader>(layout, tensor::size_bytes(type.dtype), shards, slices);
  Response response;
  const auto bytes_of = [&] {
    auto buffer = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(reader->total_bytes()));
    reader->read(*buffer);
    return buffer;
  };
  if (form == Form::kJson || form == Form::kBase64) {
    std::string out = "{";
    append_value_fields(out, type, *bytes_of(), form == Form::kJson ? ValueEncoding::kJson : ValueEncoding::kBase64);
    out += '}';
    response = json(200, std::move(out));
    if (!etag.empty()) response.headers.set("ETag", etag);
  } else {
    MemoryPieces pieces;
    std::string head = form == Form::kNpy ? write_npy_head(type) : std::string();
    const std::string_view media = form == Form::kNpy ? "application/x-npy" : "application/octet-stream";
    auto found = reader->pieces(kMostPieces);
    if (found || request.headers.has("Range")) {
      struct Keep {
        std::string head;
        arrays::ShardBuffers shards;
        std::shared_ptr<std::vector<std::byte>> bytes;
      };
      auto keep = std::make_shared<Keep>(Keep{std::move(head), shards, nullptr});
      if (!keep->head.empty()) pieces.pieces.push_back(std::as_bytes(std::span<const char>(keep->head)));
      if (found) {
        pieces.pieces.insert(pieces.pieces.end(), found->begin(), found->end());
      } else {
        keep->bytes = bytes_of();
        pieces.pieces.emplace_back(*keep->bytes);
      }
      pieces.keep = keep;
      response = ranged(request, media, std::move(pieces), etag);
    } else {
      const auto total = static_cast<int64_t>(head.size()) + reader->total_bytes();
      auto text = std::make_shared<std::string>(std::move(head));
      auto sent = std::make_shared<size_t>(0);
      response = generated(200, media, {total, [reader, text, sent](std::span<std::byte> out) {
                                          size_t filled = 0;
                                          if (*sent < text->size()) {
                                            filled = std::min(out.size(), text->size() - *sent);
                                            std::copy_n(reinterpret_cast<const std::byte*>(text->data()) + *sent,
                                                        filled, out.data());
                                            *sent += filled;
                                          }
                                          return filled + reader->read(out.subspan(filled));
                                        }});
      if (!etag.empty()) response.headers.set("ETag", etag);
    }
    response.headers.set("Content-Disposition",
                         "attachment; filename=\"" + filename + (form == Form::kNpy ? ".npy" : ".bin") + "\"");
  }
  response.headers.set("Array-Dtype", tensor::name(type.dtype));
  std::string shape;
  for (const int64_t dim : type.dims) shape += (shape.empty() ? "" : ",") + std::to_string(dim);
  response.headers.set("Array-Shape", shape);
  response.headers.set("Array-Order", "C");
  response.headers.set("Vary", "Accept");
  return response;
}

}  // namespace

Response download_array(Request& request, Services& services, const arrays::ArrayRef& array) {
  const arrays::ShardBuffers shards = services.arrays.shards(array);
  const std::string etag = array_etag(*array);
  if (const auto known = request.headers.get("If-None-Match"); known && (*known == etag || *known == "*")) {
    Response unchanged = no_content();
    unchanged.status = 304;
    unchanged.headers.set("ETag", etag);
    return unchanged;
  }
  return send(request, {array, &array->layout()}, array->info().type, shards, etag, array->info().id);
}

Response download_shard(Request& request, Services& services, const arrays::ArrayRef& array, int64_t device) {
  const auto& placements = array->layout().placements;
  const auto found = std::find_if(placements.begin(), placements.end(),
                                  [&](const sharding::Placement& p) { return p.device == device; });
  if (found == placements.end())
    throw core::Error("not_found", "array '" + array->info().id + "' has no shard on device " + std::to_string(device));
  const arrays::ShardBuffers shards = services.arrays.shards(array);
  // The shard's real rows within its padded buffer are a slice of an array that is one shard.
  auto layout = std::make_shared<sharding::Layout>();
  layout->global_dims = array->layout().shard_dims;
  layout->shard_dims = array->layout().shard_dims;
  layout->part_counts.assign(layout->shard_dims.size(), 1);
  const tensor::Dims actual = array->layout().shard_actual_dims(found->shard);
  if (request.query.has("slice")) throw core::Error("invalid_query", "slice: shards are given whole");
  static constexpr std::string_view kKnown[] = {"format", "as_process"};
  request.query.require_known(kKnown);
  auto buffer = std::make_shared<std::vector<std::byte>>();
  std::vector<arrays::Slice> slices = arrays::whole_slices(actual);
  arrays::GatherReader reader(layout, tensor::size_bytes(array->info().type.dtype),
                              {shards[static_cast<size_t>(found->shard)]}, slices);
  tensor::BufferRef dense = services.pool.allocate(reader.total_bytes());
  reader.read(dense->bytes());
  auto whole = std::make_shared<sharding::Layout>();
  whole->global_dims = actual;
  whole->shard_dims = actual;
  whole->part_counts.assign(actual.size(), 1);
  return send(request, whole, {array->info().type.dtype, actual}, {dense}, "",
              array->info().id + ".shard" + std::to_string(found->shard));
}

}  // namespace meshd::api
