// Binds arrays to a plan: the buffer of each argument shard, and the array shard of each result buffer. Buffers are
// shared where the two agree, blocks are copied where they do not.
#pragma once

#include <memory>
#include <optional>
#include <string>
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

/// The shard of the layout that each shard of the plan is, of a layout that has_shards_of(); nothing where it is
/// padding alone, beyond the end of an uneven dimension.
std::vector<std::optional<int64_t>> shards_of_plan(const sharding::Layout& layout,
                                                   const compile::PlanParameter& wanted);

/// Whether a run's shards may be slices of the source's buffers. Not when the source is donated: the holders of a slice
/// cannot be counted.
enum class BufferSlices : bool { kRefused, kAllowed };

/// Buffers in plan order. Shares those of `source` where the layouts agree, or slices of them where rows of one shard
/// become rows of several; else new ones from the pool, filled block by block.
std::vector<tensor::BufferRef> bind_argument(const Source& source, const compile::PlanParameter& wanted,
                                             tensor::BufferPool& pool, BufferSlices slices);

/// The plan's shard that is each shard of the layout. The layout is that of the result's own sharding, so the shards
/// agree.
std::vector<int64_t> plan_shards_of(const compile::PlanParameter& given, const sharding::Layout& layout);

/// What a run calls a version of an array (device::RunArgument::version).
std::string version_name(const arrays::Array& array, int64_t version);

/// Result buffers (plan order) as shards of the layout, in its order; null where they are null.
arrays::ShardBuffers unbind_result(const std::vector<tensor::BufferRef>& outputs, const compile::PlanParameter& given,
                                   const sharding::Layout& layout);

}  // namespace meshd::jobs
