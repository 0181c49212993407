#include "service/arrays/reshard.h"

#include <fmt/core.h>

#include "service/core/error.h"
#include "service/kernels/movement/movement.h"

namespace meshd::arrays {

ArrayRef reshard(ArrayStore& store, const ArrayRef& from, ReshardTarget target, const std::string& principal) {
  const ArrayInfo& info = from->info();
  if (target.sharding.mesh->device_ids.empty()) {
    const mesh::Mesh& own = *info.sharding.mesh;
    if (!info.committed || own.axes != target.sharding.mesh->axes) {
      throw core::Error("invalid_array",
                        fmt::format("the array lies on {}, the abstract mesh is {}; they must have the same axes",
                                    mesh::to_text(own), mesh::to_text(*target.sharding.mesh)));
    }
    target.sharding.mesh = info.sharding.mesh;
    target.mesh_id = info.mesh_id;
  }
  const ArrayRef to = store.begin({.principal = principal,
                                   .session = info.session,
                                   .name = target.name.value_or(info.is_unique ? "" : info.name),
                                   .type = info.type,
                                   .mesh_id = std::move(target.mesh_id),
                                   .sharding = std::move(target.sharding),
                                   .durability = target.durability.value_or(info.durability),
                                   .key = std::move(target.key)});
  const ShardBuffers source = store.shards(from);
  ShardBuffers shards = store.allocate(*to);
  for (const sharding::BlockCopy& copy : sharding::reshard_copies(from->layout(), to->layout())) {
    kernels::copy_block(shards[static_cast<size_t>(copy.to_shard)]->data(), to->layout().shard_dims, copy.to_start,
                        source[static_cast<size_t>(copy.from_shard)]->data(), from->layout().shard_dims,
                        copy.from_start, copy.extent, tensor::size_bytes(info.type.dtype));
  }
  store.publish(to, std::move(shards));
  return to;
}

}  // namespace meshd::arrays
