// Zarr hierarchies: groups and arrays by name, read and written (zarr.h).
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "api/codecs/array_document.h"
#include "api/codecs/files/zarr.h"
#include "api/codecs/files/zarr_metadata.h"
#include "api/codecs/value.h"
#include "api/fields/ranges.h"
#include "api/routes/arrays/array_parts.h"
#include "api/routes/arrays/upload_body.h"
#include "api/routes/repeated.h"
#include "api/routes/routes.h"
#include "api/routes/zarr/zarr.h"
#include "service/arrays/assembly.h"
#include "service/core/ids.h"
#include "service/core/sha256.h"

namespace meshd::api {
namespace {

using Kind = ZarrKey::Kind;

constexpr int64_t kMostBody = int64_t{4} << 20;  // of a metadata document
constexpr size_t kMostKept = 256 * 1024;         // of it without consolidated metadata
constexpr std::array<std::string_view, 4> kPlaceFields = {"mesh", "spec", "durability", "session"};

struct Base {
  int format = 3;
  bool is_pending = false;  ///< what is not committed is shown
};

Base base_of(const Request& request) {
  const std::string& word = request.capture("format");
  for (const auto& [name, base] : {std::pair("v3", Base{3, false}),
                                   {"v2", Base{2, false}},
                                   {"v3-pending", Base{3, true}},
                                   {"v2-pending", Base{2, true}}}) {
    if (word == name) return base;
  }
  throw core::Error("not_found", fmt::format("'{}' is none of v3, v2, v3-pending and v2-pending", word));
}

ZarrKey key_of(const Request& request, const Base& base) {
  return read_zarr_key(request.capture("path"), base.format == 3 ? ZarrFormats::k3 : ZarrFormats::k2);
}

std::string document_key(Kind kind) {
  switch (kind) {
    case Kind::kNode3:
      return "zarr.json";
    case Kind::kArray2:
      return ".zarray";
    case Kind::kGroup2:
      return ".zgroup";
    case Kind::kAttributes2:
      return ".zattrs";
    case Kind::kConsolidated2:
      return ".zmetadata";
    case Kind::kNone:
    case Kind::kChunk:
      break;
  }
  return {};
}

[[noreturn]] void refuse_key(const Request& request, const Base& base) {
  throw core::Error("not_found",
                    base.format == 3
                        ? fmt::format("'{}' is no key of Zarr version 3: these end in /zarr.json, or in /c and the "
                                      "chunk's index, as c/1/0",
                                      request.capture("path"))
                        : fmt::format("'{}' is no key of Zarr version 2: these end in /.zarray, /.zgroup, /.zattrs, "
                                      "/.zmetadata, or the chunk's index, as 1.0",
                                      request.capture("path")));
}

core::Error none_there(const Request& request) {
  return {"not_found", fmt::format("there is no '{}'", request.capture("path"))};
}

int64_t chunk_of(const ZarrKey& key, const zarr::ChunkedArray& array) {
  const auto index = chunk_index(key, array.array()->info().type.dims.size());
  const int64_t chunk = index ? array.grid().chunk_at(*index) : -1;
  if (chunk < 0) throw core::Error("not_found", fmt::format("the array at '{}' has no such chunk", key.node));
  return chunk;
}

// Memory of a chunk while it is decoded, and cropped where it is at the end of a dimension.
void hold_chunk(Request& request, const zarr::ChunkGrid& grid, int64_t chunk) {
  request.memory.grow(grid.chunk_bytes());
  if (grid.region_bytes(chunk) != grid.chunk_bytes()) request.memory.grow(grid.region_bytes(chunk));
}

// What is pending under this key; nothing where the node is not.
std::optional<Response> get_pending(Request& request, Services& services, const ZarrKey& key) {
  const auto node = services.zarr.find_pending(request.principal, key.node, key.format);
  if (!node) return std::nullopt;
  if (key.kind != Kind::kChunk) {
    const auto found = node->documents.find(document_key(key.kind));
    if (found == node->documents.end()) throw none_there(request);
    return send_zarr_document(request, found->second, "");
  }
  if (node->array == nullptr) throw none_there(request);
  const int64_t chunk = chunk_of(key, *node->array);
  const zarr::ChunkEncoding& encoding = node->array->type().encoding;
  hold_chunk(request, node->array->grid(), chunk);
  request.memory.grow(zarr::most_encoded_bytes(encoding, node->array->grid().chunk_bytes()));
  std::vector<std::byte> plain(static_cast<size_t>(node->array->grid().chunk_bytes()));
  if (!node->array->read(chunk, plain)) throw none_there(request);
  const auto bytes = std::make_shared<const std::vector<std::byte>>(zarr::encode_chunk(encoding, plain));
  return ranged(request, "application/octet-stream",
                {{std::span<const std::byte>(*bytes)}, bytes, static_cast<int64_t>(bytes->size())}, "");
}

// The document of a committed group; empty where it has none of this key.
std::string group_document(const zarr::Group& group, const ZarrKey& key, const Base& base) {
  const ZarrListing listing = base.is_pending ? ZarrListing::kNone : ZarrListing::kConsolidated;
  switch (key.kind) {
    case Kind::kNode3:
      return zarr3_group(group, key.node, listing);
    case Kind::kGroup2:
      return zarr2_group();
    case Kind::kAttributes2:
      return zarr2_group_attributes(group, key.node);
    case Kind::kConsolidated2:
      return base.is_pending ? std::string() : zarr2_consolidated(group, key.node);
    case Kind::kArray2:
    case Kind::kChunk:
    case Kind::kNone:
      break;
  }
  return {};
}

Response get_committed(Request& request, Services& services, const ZarrKey& key, const Base& base) {
  const bool is_of_arrays = key.kind != Kind::kGroup2 && key.kind != Kind::kConsolidated2;
  if (const arrays::ArrayRef array = services.zarr.find_array(key.node, request.principal)) {
    auto response = is_of_arrays ? send_zarr_array(request, services, array, key, std::nullopt) : std::nullopt;
    if (!response) throw none_there(request);
    return std::move(*response);
  }
  const bool is_of_groups = key.kind != Kind::kArray2 && key.kind != Kind::kChunk;
  const auto group =
      is_of_groups ? services.zarr.find_group(key.node, request.principal, request.memory) : std::nullopt;
  const std::string text = group ? group_document(*group, key, base) : std::string();
  if (text.empty()) throw none_there(request);
  request.memory.grow(static_cast<int64_t>(text.size()));
  return send_zarr_document(request, text, R"(")" + core::sha256_hex(text).substr(0, 32) + R"(")");
}

std::string document_of(Request& request) { return request.body().read_all(kMostBody, request.memory); }

ZarrMetadata read_metadata(Kind kind, const std::string& text, tensor::BufferPool& pool,
                           core::MemoryReservation* memory) {
  switch (kind) {
    case Kind::kNode3:
      return read_zarr3(text, pool, memory);
    case Kind::kArray2:
      return read_zarr2_array(text, pool, memory);
    case Kind::kGroup2:
      return read_zarr2_group(text, memory);
    default:
      return read_zarr2_attributes(text, memory);
  }
}

// A pending array for a document; that which is there where nothing but attributes has changed. Another one is charged
// beside it until it takes its place: what is refused changes nothing.
std::shared_ptr<zarr::ChunkedArray> chunked_array(Request& request, Services& services, const ZarrKey& key,
                                                  ZarrMetadata& read) {
  const auto pending = services.zarr.find_pending(request.principal, key.node, key.format);
  const bool says_place = std::any_of(kPlaceFields.begin(), kPlaceFields.end(),
                                      [&](std::string_view field) { return request.query.has(field); });
  if (pending && pending->array != nullptr && !says_place && !pending->array->is_gone() &&
      pending->array->type() == read.chunked && pending->array->array()->info().type == *read.type) {
    return pending->array;
  }
  UploadQuery wanted = read_upload_query(request);
  wanted.name = key.node;
  wanted.is_unique = true;
  for (const arrays::ArrayRef& holder : services.zarr.holders(key.node, request.principal))
    wanted.leaving.push_back(holder->info().id);
  const arrays::ArrayRef array = begin_array(wanted, *read.type, request, services, std::nullopt);
  const bool is_on_disk =
      wanted.durability == storage::Durability::kDurable && array->shard_bytes() >= arrays::ArrayStore::kStreamedBytes;
  zarr::FileCharge files;
  if (is_on_disk) files = services.zarr.charge_files(request.principal, array->layout().shard_count);
  return std::make_shared<zarr::ChunkedArray>(services.arrays, array, std::move(read.chunked), std::move(files));
}

Response put_document(Request& request, Services& services, const ZarrKey& key) {
  if (!key.node.empty() && !is_zarr_path(key.node))
    throw core::Error("invalid_request", fmt::format("'{}' is no path of a Zarr node: its segments are not empty, and "
                                                     "begin with no '__'",
                                                     key.node));
  ZarrMetadata read = read_metadata(key.kind, document_of(request), services.pool, &request.memory);
  if (key.kind == Kind::kConsolidated2) return no_content();
  if (read.text.size() > kMostKept) {
    throw core::Error("body_too_large",
                      fmt::format("the document has {} bytes without consolidated metadata, at most {} "
                                  "are taken",
                                  read.text.size(), kMostKept));
  }
  const bool is_array = read.kind == zarr::NodeKind::kArray;
  if (is_array && key.node.empty())
    throw core::Error("invalid_request", "the root is a group: PUT the array below a name");
  zarr::NodeDocument document{document_key(key.kind), std::move(read.text), read.kind, std::move(read.attributes), {}};
  if (is_array) document.array = chunked_array(request, services, key, read);
  const auto array = document.array;
  services.zarr.put(request.principal, key.node, key.format, std::move(document));
  return array != nullptr ? described(*array->array(), 201) : no_content();
}

Response put_chunk(Request& request, Services& services, const ZarrKey& key) {
  const auto array = services.zarr.find_chunked(request.principal, key.node, key.format);
  const int64_t chunk = chunk_of(key, *array);
  const zarr::ChunkEncoding& encoding = array->type().encoding;
  const int64_t chunk_bytes = array->grid().chunk_bytes();
  const arrays::PartOnItsWay on_its_way(services.arrays, array->array());
  const int64_t most = zarr::most_encoded_bytes(encoding, chunk_bytes);
  if (const auto length = request.body().content_length(); length && *length > most) {
    throw core::Error("malformed_body",
                      fmt::format("the body has {} bytes; a chunk of this array has {}", *length, chunk_bytes));
  }
  // What a client that sends slowly, or nothing, does not need yet is not held.
  const std::string bytes = request.body().read_all(most, request.memory);
  hold_chunk(request, array->grid(), chunk);
  std::vector<std::byte> plain(static_cast<size_t>(chunk_bytes));
  zarr::decode_chunk(encoding, std::as_bytes(std::span<const char>(bytes)), plain);
  clean_elements(array->array()->info().type.dtype, plain);
  array->write(chunk, plain);
  return no_content();
}

}  // namespace

Response get_zarr_node(Request& request, Services& services) {
  request.query.require_known({});
  const Base base = base_of(request);
  const ZarrKey key = key_of(request, base);
  if (key.kind == Kind::kNone) refuse_key(request, base);
  std::optional<Response> response;
  if (base.is_pending) response = get_pending(request, services, key);
  if (!response) response = get_committed(request, services, key, base);
  response->headers.set("Cache-Control", "no-store");
  return std::move(*response);
}

Response put_zarr_node(Request& request, Services& services) {
  request.query.require_known(kPlaceFields);
  const Base base = base_of(request);
  const ZarrKey key = key_of(request, base);
  if (key.kind == Kind::kNone) refuse_key(request, base);
  return key.kind == Kind::kChunk ? put_chunk(request, services, key) : put_document(request, services, key);
}

Response delete_zarr_node(Request& request, Services& services) {
  request.query.require_known({});
  const Base base = base_of(request);
  const ZarrKey key = key_of(request, base);
  if (key.kind == Kind::kNone) refuse_key(request, base);
  if (key.kind == Kind::kChunk) {
    const auto array = services.zarr.find_chunked(request.principal, key.node, key.format);
    array->forget(chunk_of(key, *array));
    return no_content();
  }
  if (services.zarr.drop(request.principal, key.node, key.format, document_key(key.kind))) return no_content();
  const bool is_of_groups = key.kind == Kind::kNode3 || key.kind == Kind::kGroup2;
  if (is_of_groups && services.zarr.delete_group(key.node, request.principal)) return no_content();
  if (const arrays::ArrayRef array = services.zarr.find_array(key.node, request.principal)) {
    throw core::Error("conflict", fmt::format("'{}' is committed: DELETE /v1/arrays/{}", key.node, array->info().id));
  }
  throw none_there(request);
}

Response commit_zarr(Request& request, Services& services, const std::string& path) {
  request.query.require_known({"replace"});
  const Base base = base_of(request);
  const auto listed = [](const std::vector<arrays::ArrayRef>& made) {
    Page<ArrayDocument> page;
    for (const arrays::ArrayRef& array : made) page.items.emplace_back(*array);
    return json_of(201, page);
  };
  const RepeatedRequest repeated(request, services, "");
  if (repeated.made()) {
    return repeated.again([&] {
      std::vector<arrays::ArrayRef> made;
      for (const std::string& id : core::split_ids(*repeated.made()))
        made.push_back(services.arrays.find(id, request.principal));
      return listed(made);
    });
  }
  return listed(
      services.zarr.commit(request.principal, path, base.format, flag_of(request, "replace"), repeated.key()));
}

}  // namespace meshd::api
