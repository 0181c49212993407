#include "service/tensor/sizes.h"

#include <fmt/core.h>

namespace meshd::tensor {

void require_sizes(const TensorType& type) {
  if (type.rank() > kMaxRank) {
    throw core::Error("invalid_array",
                      fmt::format("shape: arrays have at most {} dimensions, got {}", kMaxRank, type.rank()));
  }
  if (!sizes_fit(type)) {
    throw core::Error("invalid_array", fmt::format("shape: sizes are 0 or more and their bytes fit in 63 bits, got {}",
                                                   to_string(std::span<const int64_t>(type.dims))));
  }
}

}  // namespace meshd::tensor
