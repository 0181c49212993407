// Replicated layouts on one device. Private to service/jobs.
#pragma once

#include <memory>

#include "service/sharding/layout.h"

namespace meshd::jobs {

/// One shard with everything, on one device.
inline sharding::Layout one_device_layout(const tensor::Dims& dims) {
  const auto one = std::make_shared<const mesh::Mesh>(mesh::Mesh{{}, {0}, {}});
  return sharding::make_layout(dims, sharding::fully_replicated("", one, static_cast<int64_t>(dims.size())));
}

}  // namespace meshd::jobs
