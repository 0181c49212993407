#include "service/jobs/execution/binding.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/kernels/movement/movement.h"

namespace meshd::jobs {
namespace {

// Which shard of the layout begins at `start`.
int64_t shard_at(const sharding::Layout& layout, const tensor::Dims& start) {
  int64_t shard = 0;
  for (size_t d = 0; d < start.size(); ++d) {
    const int64_t part = layout.shard_dims[d] == 0 ? 0 : start[d] / layout.shard_dims[d];
    shard = shard * layout.part_counts[d] + std::min(part, layout.part_counts[d] - 1);
  }
  return shard;
}

// The plan's shard as a slice of a source that is one unsharded buffer, or null when its rows are not contiguous there.
tensor::BufferRef slice_of(const Source& source, const compile::PlanParameter& wanted, int64_t shard) {
  const sharding::Layout& layout = *source.layout;
  const tensor::Dims dims = wanted.shard_dims(shard);
  if (layout.shard_count != 1 || dims.empty() || dims != wanted.type.local.dims) return nullptr;
  int64_t row_bytes = tensor::size_bytes(wanted.type.local.dtype);
  for (size_t d = 1; d < dims.size(); ++d) {
    if (dims[d] != layout.global_dims[d]) return nullptr;
    row_bytes *= dims[d];
  }
  const int64_t offset = wanted.shard_start(shard)[0] * row_bytes;
  if (offset % tensor::kBufferAlignment != 0 || wanted.shard_bytes == 0) return nullptr;
  return std::make_shared<tensor::Buffer>(source.shards->front(), offset, wanted.shard_bytes);
}

bool is_empty(const tensor::Dims& dims) {
  return std::any_of(dims.begin(), dims.end(), [](int64_t size) { return size == 0; });
}

}  // namespace

bool has_shards_of(const sharding::Layout& layout, const compile::PlanParameter& wanted) {
  return layout.shard_dims == wanted.type.local.dims;
}

std::vector<std::optional<int64_t>> shards_of_plan(const sharding::Layout& layout,
                                                   const compile::PlanParameter& wanted) {
  std::vector<std::optional<int64_t>> out;
  for (int64_t s = 0; s < wanted.shard_count(); ++s) {
    // A step may write it, so it is no other shard's buffer.
    const bool is_padding = is_empty(wanted.shard_dims(s));
    out.push_back(is_padding ? std::nullopt : std::optional(shard_at(layout, wanted.shard_start(s))));
  }
  return out;
}

std::vector<tensor::BufferRef> bind_argument(const Source& source, const compile::PlanParameter& wanted,
                                             tensor::BufferPool& pool, BufferSlices slices) {
  std::vector<tensor::BufferRef> out;
  const sharding::Layout& layout = *source.layout;
  if (has_shards_of(layout, wanted)) {
    for (const std::optional<int64_t>& shard : shards_of_plan(layout, wanted))
      out.push_back(shard ? (*source.shards)[static_cast<size_t>(*shard)] : pool.allocate(wanted.shard_bytes));
    return out;
  }
  const int64_t element_bytes = tensor::size_bytes(wanted.type.local.dtype);
  const size_t rank = wanted.type.local.dims.size();
  for (int64_t s = 0; s < wanted.shard_count(); ++s) {
    if (slices == BufferSlices::kAllowed) {
      if (tensor::BufferRef slice = slice_of(source, wanted, s)) {
        out.push_back(std::move(slice));
        continue;
      }
    }
    tensor::BufferRef buffer = pool.allocate(wanted.shard_bytes);
    const tensor::Dims start = wanted.shard_start(s);
    const tensor::Dims dims = wanted.shard_dims(s);
    for (int64_t from = 0; from < layout.shard_count; ++from) {
      const std::vector<sharding::IndexRange> index = layout.shard_index(from);
      tensor::Dims to_start(rank), from_start(rank), extent(rank);
      bool meets = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t low = std::max(start[d], index[d].start);
        const int64_t high = std::min(start[d] + dims[d], index[d].stop);
        meets = meets && low < high;
        to_start[d] = low - start[d];
        from_start[d] = low - index[d].start;
        extent[d] = high - low;
      }
      if (!meets) continue;
      kernels::copy_block(buffer->data(), wanted.type.local.dims, to_start,
                          (*source.shards)[static_cast<size_t>(from)]->data(), layout.shard_dims, from_start, extent,
                          element_bytes);
    }
    out.push_back(std::move(buffer));
  }
  return out;
}

std::string version_name(const arrays::Array& array, int64_t version) {
  return fmt::format("{}.v{}", array.info().id, version);
}

std::vector<int64_t> plan_shards_of(const compile::PlanParameter& given, const sharding::Layout& layout) {
  if (!has_shards_of(layout, given)) {
    throw core::Error("internal", fmt::format("a result's plan and its sharding disagree: {} against shards of {}",
                                              tensor::to_string(given.type.local),
                                              tensor::to_string(std::span<const int64_t>(layout.shard_dims))));
  }
  constexpr int64_t kNone = -1;
  std::vector<int64_t> out(static_cast<size_t>(layout.shard_count), kNone);
  const int64_t count = given.shard_count();
  for (int64_t s = 0; s < count; ++s) {
    int64_t& place = out[static_cast<size_t>(shard_at(layout, given.shard_start(s)))];
    // Positions beyond the end of an uneven dimension hold empty shards; the first one that has rows wins.
    if (place == kNone || !is_empty(given.shard_dims(s))) place = s;
  }
  std::replace(out.begin(), out.end(), kNone, count - 1);
  return out;
}

arrays::ShardBuffers unbind_result(const std::vector<tensor::BufferRef>& outputs, const compile::PlanParameter& given,
                                   const sharding::Layout& layout) {
  arrays::ShardBuffers shards;
  for (const int64_t shard : plan_shards_of(given, layout)) shards.push_back(outputs[static_cast<size_t>(shard)]);
  return shards;
}

}  // namespace meshd::jobs
