#include "api/codecs/array_views.h"

#include "api/codecs/json.h"
#include "api/codecs/mesh_codec.h"

namespace meshd::api {

std::string array_text(const arrays::Array& array) {
  std::string out = std::string(tensor::name(array.info().type.dtype)) + "[";
  const tensor::Dims& dims = array.info().type.dims;
  for (size_t d = 0; d < dims.size(); ++d) out += (d ? "," : "") + std::to_string(dims[d]);
  return out + "]";
}

std::string array_repr(const arrays::Array& array) {
  const arrays::ArrayInfo& info = array.info();
  std::string out = "Array(shape=(";
  for (size_t d = 0; d < info.type.dims.size(); ++d) out += (d ? ", " : "") + std::to_string(info.type.dims[d]);
  out += info.type.rank() == 1 ? ",)" : ")";
  out += ", dtype=" + std::string(tensor::name(info.type.dtype));
  if (info.committed) {
    out += ", mesh=" + mesh::to_text(*info.sharding.mesh) +
           ", sharding=" + sharding_document(info.sharding, info.type.rank(), false);
  }
  return out + ")";
}

std::vector<std::string> device_shard_documents(const sharding::Layout& layout, const mesh::Processes& processes,
                                                const ShardScope& scope, const std::string& data_path) {
  std::vector<std::string> out;
  for (const sharding::DeviceShard& device_shard : layout.device_shards) {
    const int64_t process = processes.of(device_shard.device);
    const bool is_local = scope.process < 0 || process == scope.process;
    if (scope.local_only && !is_local) continue;
    const bool has_come = scope.received.empty() || scope.received.at(static_cast<size_t>(device_shard.position));
    if (scope.only_received && *scope.only_received != has_come) continue;
    std::string index = "[";
    std::vector<int64_t> dims;
    for (size_t d = 0; d < device_shard.index.size(); ++d) {
      index += (d ? ",[" : "[") + std::to_string(device_shard.index[d].start) + "," +
               std::to_string(device_shard.index[d].stop) + "]";
      dims.push_back(device_shard.index[d].stop - device_shard.index[d].start);
    }
    std::string document = "{\"position\":" + std::to_string(device_shard.position) +
                           ",\"device\":" + std::to_string(device_shard.device) +
                           ",\"process\":" + std::to_string(process) + ",\"index\":" + index +
                           "],\"replica_id\":" + std::to_string(device_shard.replica_id) +
                           ",\"shard\":" + std::to_string(device_shard.shard) + ",\"shape\":" + integer_list(dims);
    if (!data_path.empty()) {
      document += ",\"data\":" +
                  (is_local ? quote(data_path + "/" + std::to_string(device_shard.device)) : std::string("null"));
    }
    if (!scope.received.empty()) document += has_come ? ",\"received\":true" : ",\"received\":false";
    out.push_back(document + "}");
  }
  return out;
}

}  // namespace meshd::api
