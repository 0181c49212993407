#include "service/arrays/array.h"

namespace meshd::arrays {

Array::Array(ArrayInfo info, std::shared_ptr<const sharding::Layout> layout, std::shared_ptr<LoadedBytes> loaded_bytes)
    : info_(std::move(info)), layout_(std::move(layout)), state_(std::in_place, std::move(loaded_bytes)) {}

int64_t Array::shard_bytes() const {
  return layout_->shard_count * tensor::byte_count({info_.type.dtype, layout_->shard_dims});
}

ReadableShards ReadableShards::only(int64_t shard) const {
  const auto s = static_cast<size_t>(shard);
  if (blobs.empty()) return ShardBuffers{memory.at(s)};
  ReadableShards out;
  out.blobs.push_back(blobs.at(s));
  return out;
}

}  // namespace meshd::arrays
