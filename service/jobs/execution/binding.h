// Binds arrays to a plan: the buffer of each argument shard, and the array shard of each result buffer. Buffers are
// shared where the two agree, blocks are copied where they do not.
#pragma once

#include <memory>
#include <vector>

#include "service/arrays/array.h"
#include "service/compile/plan/plan.h"
#include "service/tensor/buffer.h"

namespace meshd::jobs {

/// A value before a run: shards of a layout.
struct Source {
  const sharding::Layout* layout = nullptr;
  const arrays::ShardBuffers* shards = nullptr;
};

/// True when the plan's shards are exactly those of the layout.
bool has_shards_of(const sharding::Layout& layout, const compile::PlanParameter& wanted);

/// Whether a run's shards may be slices of the source's buffers. Not when the source is donated: the holders of a slice
/// cannot be counted.
enum class BufferSlices : bool { kRefused, kAllowed };

/// Buffers in plan order. Shares those of `source` where the layouts agree, or slices of them where rows of one shard
/// become rows of several; else new ones from the pool, filled block by block.
std::vector<tensor::BufferRef> bind_argument(const Source& source, const compile::PlanParameter& wanted,
                                             tensor::BufferPool& pool, BufferSlices slices);

/// Result buffers (plan order) as shards of the layout, in its order. The layout is that of the result's own sharding,
/// so the shards agree.
arrays::ShardBuffers unbind_result(const std::vector<tensor::BufferRef>& outputs, const compile::PlanParameter& given,
                                   const sharding::Layout& layout);

}  // namespace meshd::jobs
