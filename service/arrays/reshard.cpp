#include "service/arrays/reshard.h"

#include <fmt/core.h>

#include <span>
#include <vector>

#include "service/arrays/regions/region.h"
#include "service/core/error.h"
#include "service/kernels/movement/movement.h"

namespace meshd::arrays {
namespace {

// Up to here blocks are copied in memory, which is faster where rows are short.
constexpr int64_t kStreamedReshard = int64_t{32} << 20;
constexpr size_t kReshardPiece = size_t{1} << 20;

// In row-major order, from memory or the disk to the disk.
NewShards streamed(ArrayStore& store, const ArrayRef& from, const Array& to) {
  const int64_t element_bytes = tensor::size_bytes(to.info().type.dtype);
  GatherReader reader({from, &from->layout()}, element_bytes, store.open(from).shards,
                      full_slices(to.info().type.dims));
  NewShards shards = store.new_shards(to);
  ScatterWriter writer(to.layout(), element_bytes, shards);
  std::vector<std::byte> piece(kReshardPiece);
  while (writer.remaining() > 0) writer.write(std::span(piece).first(reader.read(piece)));
  return shards;
}

}  // namespace

ArrayRef reshard(ArrayStore& store, const ArrayRef& from, ReshardTarget target, const std::string& principal) {
  const ArrayInfo& info = from->info();
  if (target.sharding.mesh->device_ids.empty()) {
    const mesh::Mesh& own = *info.sharding.mesh;
    if (!info.committed || own.axes != target.sharding.mesh->axes) {
      throw core::Error("invalid_array",
                        fmt::format("the array is on {}, the abstract mesh is {}; they must have the same axes",
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
  if (from->shard_bytes() >= kStreamedReshard && to->info().durability == storage::Durability::kDurable) {
    store.publish(to, streamed(store, from, *to));
    return to;
  }
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
