#include "api/codecs/array_document.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/codecs/mesh_codec.h"
#include "api/codecs/value.h"

namespace meshd::api {
namespace {

// Devices that a document names of those whose part is missing.
constexpr size_t kMostDevices = 100;

PendingDocument pending_of(const arrays::PendingParts& parts, const sharding::Layout& layout) {
  PendingDocument out;
  out.bytes = parts.bytes;
  out.expires = parts.expires;
  out.parts = static_cast<int64_t>(parts.received.size());
  if (parts.are_chunks) {
    out.missing = std::count(parts.received.begin(), parts.received.end(), false);
    return out;
  }
  for (const sharding::DeviceShard& place : layout.device_shards) {
    if (parts.received[static_cast<size_t>(place.position)]) continue;
    ++out.missing;
    if (out.missing_devices.size() < kMostDevices) out.missing_devices.push_back(place.device);
  }
  return out;
}

}  // namespace

ArrayDocument::ArrayDocument(arrays::Array& shown) : array(shown) {
  array.state().with([&](const arrays::Array::State& current) {
    state = storage::to_string(current.state);
    const bool is_live = current.state == storage::ArrayState::kReady || current.state == storage::ArrayState::kPending;
    is_unique = array.info().is_unique && is_live;
    reason = current.reason;
    version = current.version;
    if (current.parts && current.state == storage::ArrayState::kPending)
      pending = pending_of(*current.parts, array.layout());
  });
}

template <>
Schema<PendingDocument> make_schema() {
  using Doc = PendingDocument;
  return {"PendingParts",
          {{"parts", &Doc::parts, {.low = 0}},
           {"missing", &Doc::missing, {.low = 0}},
           {"missing_devices", &Doc::missing_devices, {.low = 0}},
           {"bytes", &Doc::bytes, {.low = 0}},
           {"expires", &Doc::expires}}};
}

template <>
Schema<ArrayDocument> make_schema() {
  using Doc = ArrayDocument;
  using Sizes = std::span<const int64_t>;
  const Rules sizes{.low = 0, .high = kLargestExact - 1};
  return {"StoredArray",
          {{"id", [](const Doc& doc) -> std::string_view { return doc.array.info().id; }},
           {"name", [](const Doc& doc) -> std::string_view { return doc.array.info().name; }},
           {"unique", &Doc::is_unique},
           {"dtype", [](const Doc& doc) { return doc.array.info().type.dtype; }},
           {"shape", [](const Doc& doc) -> Sizes { return doc.array.info().type.dims; }, sizes},
           {"ndim", [](const Doc& doc) { return doc.array.info().type.rank(); }, {.low = 0}},
           {"size", [](const Doc& doc) { return tensor::element_count(doc.array.info().type); }, {.low = 0}},
           {"bytes", [](const Doc& doc) { return doc.array.byte_count(); }, {.low = 0}},
           {"mesh", [](const Doc& doc) { return or_null(doc.array.info().mesh_id); }},
           {"sharding",
            [](const Doc& doc) { return sharding_document(doc.array.info().sharding, doc.array.info().type.rank()); }},
           {"shard_shape", [](const Doc& doc) -> Sizes { return doc.array.layout().shard_dims; }, sizes},
           {"shard_count", [](const Doc& doc) { return doc.array.layout().shard_count; }, {.low = 0}},
           {"is_fully_replicated", [](const Doc& doc) { return doc.array.info().sharding.is_fully_replicated(); }},
           {"committed", [](const Doc& doc) { return doc.array.info().committed; }},
           {"durability",
            [](const Doc& doc) { return storage::to_string(doc.array.info().durability); },
            {.words = kDurabilities}},
           {"state", &Doc::state, {.words = {"pending", "ready", "donated", "lost"}}},
           {"version", &Doc::version, {.low = 0}},
           {"session", [](const Doc& doc) { return or_null(doc.array.info().session); }},
           {"created", [](const Doc& doc) { return doc.array.info().created; }},
           {"pending", &Doc::pending},
           {"reason", [](const Doc& doc) { return unless_empty(doc.reason); }}}};
}

std::string ArrayDocument::etag() const { return array_etag(array.info().id, version); }

std::string array_etag(std::string_view id, int64_t version) { return fmt::format("\"{}.{}\"", id, version); }

template <>
Schema<ShardDocument> make_schema() {
  using Doc = ShardDocument;
  return {"Shard",
          {{"position", [](const Doc& doc) { return doc.shard.position; }, {.low = 0}},
           {"device", [](const Doc& doc) { return doc.shard.device; }, {.low = 0}},
           {"process", &Doc::process, {.low = 0}},
           {"index",
            [](const Doc& doc) {
              std::vector<std::vector<int64_t>> out;
              for (const sharding::IndexRange& range : doc.shard.index) out.push_back({range.start, range.stop});
              return out;
            },
            {.low = 0, .high = kLargestExact - 1}},
           {"replica_id", [](const Doc& doc) { return doc.shard.replica_id; }, {.low = 0}},
           {"shard", [](const Doc& doc) { return doc.shard.shard; }, {.low = 0}},
           {"shape",
            [](const Doc& doc) {
              std::vector<int64_t> out;
              for (const sharding::IndexRange& range : doc.shard.index) out.push_back(range.stop - range.start);
              return out;
            },
            {.low = 0, .high = kLargestExact - 1}},
           {"data", &Doc::data},
           {"received", &Doc::received}}};
}

std::vector<ShardDocument> shard_documents(const sharding::Layout& layout, const mesh::Processes& processes,
                                           const ShardScope& scope, const std::string& data_path) {
  std::vector<ShardDocument> out;
  for (const sharding::DeviceShard& shard : layout.device_shards) {
    ShardDocument made{shard, processes.of(shard.device), {}, {}};
    const bool is_local = scope.process < 0 || made.process == scope.process;
    if (scope.local_only && !is_local) continue;
    const bool has_come = scope.received.empty() || scope.received.at(static_cast<size_t>(shard.position));
    if (scope.only_received && *scope.only_received != has_come) continue;
    if (!data_path.empty()) {
      made.data.emplace();
      if (is_local) made.data->value = fmt::format("{}/{}", data_path, shard.device);
    }
    if (!scope.received.empty()) made.received = has_come;
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace meshd::api
