// A shard with a region of the array written over it, as a stream: what PUT of a slice makes of large arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "service/arrays/regions/region.h"
#include "service/arrays/regions/spool.h"

namespace meshd::arrays {

/// Part of a region that is in one shard.
struct RegionInShard {
  std::vector<Slice> slices;   ///< of the array: those indices of the region that the shard has
  std::vector<int64_t> first;  ///< where they begin in the region, by dimension
};

/// Nothing where the shard has nothing of the region. Example: int8[8] over x = 2, region 1:7:2 (1, 3, 5): shard 1 has
/// 5, slices 5:7:2, first 2.
std::optional<RegionInShard> region_in_shard(const sharding::Layout& layout, std::span<const Slice> slices,
                                             int64_t shard);

/// Gives `out` all bytes of the shard, padding too, in ascending order and in pieces of at most 256 KiB: `region`'s
/// where the region is, `before`'s elsewhere. `region` is row-major. Example: int8[6] in one shard, 0 1 2 3 4 5, region
/// 1:6:2 with 7 8 9: 0 7 2 8 4 9.
void merge_shard(const sharding::Layout& layout, int64_t element_bytes, std::span<const Slice> slices,
                 const RegionInShard& part, const ByteSource& before, const ByteSource& region,
                 const std::function<void(std::span<const std::byte>)>& out);

}  // namespace meshd::arrays
