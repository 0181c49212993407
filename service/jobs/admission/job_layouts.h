// Replicated layouts on one device. Private to service/jobs.
#pragma once

#include <span>

#include "service/sharding/layout.h"

namespace meshd::jobs {

/// One shard with everything, on device 0: what make_layout gives for a mesh without axes, without the walk over it
/// that each value of each request would pay.
inline sharding::Layout one_device_layout(std::span<const int64_t> dims) {
  sharding::Layout out;
  out.global_dims.assign(dims.begin(), dims.end());
  out.shard_dims = out.global_dims;
  out.part_counts.assign(dims.size(), 1);
  sharding::DeviceShard& whole = out.device_shards.emplace_back();
  whole.index.reserve(dims.size());
  for (const int64_t size : dims) whole.index.push_back({0, size});
  return out;
}

}  // namespace meshd::jobs
