#include "api/codecs/array_document.h"

#include "api/codecs/json.h"
#include "api/codecs/mesh_codec.h"

namespace meshd::api {
namespace {

// Devices that a document names of those whose part is missing; GET .../shards?state=missing lists all.
constexpr size_t kMostDevices = 100;

std::string pending_document(const arrays::PendingParts& parts, const sharding::Layout& layout) {
  int64_t missing = 0;
  std::vector<int64_t> devices;
  for (const sharding::DeviceShard& place : layout.device_shards) {
    if (parts.received[static_cast<size_t>(place.position)]) continue;
    ++missing;
    if (devices.size() < kMostDevices) devices.push_back(place.device);
  }
  return "{\"parts\":" + std::to_string(layout.device_shards.size()) + ",\"missing\":" + std::to_string(missing) +
         ",\"missing_devices\":" + integer_list(devices) + ",\"bytes\":" + std::to_string(parts.bytes) +
         ",\"expires\":" + quote(core::to_rfc3339(parts.expires)) + "}";
}

}  // namespace

std::string array_document(arrays::Array& array) {
  const arrays::ArrayInfo& info = array.info();
  std::string state, reason, pending;
  int64_t version = 0;
  array.state().with([&](const arrays::Array::State& current) {
    state = std::string(storage::to_string(current.state));
    reason = current.reason;
    version = current.version;
    if (current.parts && current.state == storage::ArrayState::kPending)
      pending = pending_document(*current.parts, array.layout());
  });
  std::string out = "{\"id\":" + quote(info.id) + ",\"name\":" + quote(info.name) + ",\"dtype\":\"" +
                    std::string(tensor::name(info.type.dtype)) + "\",\"shape\":" + integer_list(info.type.dims) +
                    ",\"ndim\":" + std::to_string(info.type.rank()) +
                    ",\"size\":" + std::to_string(tensor::element_count(info.type)) +
                    ",\"bytes\":" + std::to_string(array.byte_count()) +
                    ",\"mesh\":" + (info.mesh_id.empty() ? "null" : quote(info.mesh_id)) +
                    ",\"sharding\":" + sharding_document(info.sharding, info.type.rank(), false) +
                    ",\"shard_shape\":" + integer_list(array.layout().shard_dims) +
                    ",\"shard_count\":" + std::to_string(array.layout().shard_count) +
                    ",\"is_fully_replicated\":" + (info.sharding.is_fully_replicated() ? "true" : "false") +
                    ",\"committed\":" + (info.committed ? "true" : "false") +
                    ",\"durability\":" + quote(storage::to_string(info.durability)) + ",\"state\":" + quote(state) +
                    ",\"version\":" + std::to_string(version) +
                    ",\"session\":" + (info.session.empty() ? "null" : quote(info.session)) +
                    ",\"created\":" + quote(core::to_rfc3339(info.created));
  if (!pending.empty()) out += ",\"pending\":" + pending;
  if (!reason.empty()) out += ",\"reason\":" + quote(reason);
  return out + "}";
}

std::string array_etag(arrays::Array& array) {
  return array_etag(array.info().id, array.state().with([](const arrays::Array::State& s) { return s.version; }));
}

std::string array_etag(std::string_view id, int64_t version) {
  return "\"" + std::string(id) + "." + std::to_string(version) + "\"";
}

}  // namespace meshd::api
