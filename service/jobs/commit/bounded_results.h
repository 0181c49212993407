// Results whose size depends on data. A run gives them with the shape of their bounds, and their sizes as its last
// result; a client gets what is no padding.
#pragma once

#include "service/compile/plan/plan.h"
#include "service/jobs/execution/binding.h"

namespace meshd::jobs {

/// The dims of each result that a client sees, padding left out, of a plan that has_bounded_results(). `outputs`: of
/// all results of the plan.
std::vector<tensor::Dims> real_dims(const compile::Plan& plan,
                                    const std::vector<std::vector<tensor::BufferRef>>& outputs);

/// Shards of `layout` as those of `wanted`, which is the layout of the first wanted.global_dims elements.
arrays::ShardBuffers without_padding(const arrays::ShardBuffers& shards, const sharding::Layout& layout,
                                     const sharding::Layout& wanted, int64_t element_bytes, tensor::BufferPool& pool);

}  // namespace meshd::jobs
