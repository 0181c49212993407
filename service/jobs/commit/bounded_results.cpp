#include "service/jobs/commit/bounded_results.h"

#include <cstring>

#include "service/arrays/regions/region.h"

namespace meshd::jobs {

std::vector<tensor::Dims> real_dims(const compile::Plan& plan,
                                    const std::vector<std::vector<tensor::BufferRef>>& outputs) {
  // Every shard of the sizes has its block of them, wherever propagation has put it.
  const compile::PlanParameter& given = plan.results.back();
  std::vector<int32_t> sizes(static_cast<size_t>(tensor::element_count(given.parameter.global_type)));
  for (int64_t shard = 0; shard < given.shard_count(); ++shard) {
    const int64_t count = given.shard_dims(shard)[0];
    if (count == 0) continue;
    std::memcpy(sizes.data() + given.shard_start(shard)[0], outputs.back()[static_cast<size_t>(shard)]->data(),
                static_cast<size_t>(count) * sizeof(int32_t));
  }
  std::vector<tensor::Dims> out;
  for (size_t i = 0; i < plan.result_count(); ++i) {
    const partition::LocalParameter& result = plan.results[i].parameter;
    out.push_back(result.global_type.dims);
    for (size_t d = 0; d < result.size_places.size(); ++d) {
      if (result.size_places[d] >= 0) out.back()[d] = sizes.at(static_cast<size_t>(result.size_places[d]));
    }
  }
  return out;
}

arrays::ShardBuffers without_padding(const arrays::ShardBuffers& shards, const sharding::Layout& layout,
                                     const sharding::Layout& wanted, int64_t element_bytes, tensor::BufferPool& pool) {
  arrays::ShardBuffers out;
  for (int64_t shard = 0; shard < wanted.shard_count; ++shard) {
    const int64_t bytes = core::checked_mul(tensor::element_count(wanted.shard_dims), element_bytes);
    out.push_back(pool.allocate(bytes));
    std::memset(out.back()->data(), 0, static_cast<size_t>(bytes));
  }
  arrays::copy_between(layout, shards, wanted, out, element_bytes);
  return out;
}

}  // namespace meshd::jobs
