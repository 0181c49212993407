// Elements that are apart in memory, or read backwards, as lanes side by side.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

/// Lane i becomes the element `i * stride` elements behind `from`. Of 1, 2, 4, 8 or 16 bytes, aligned or not; `from`
/// and `to` do not overlap. Strides of -1, 2, 3 and 4 are read in whole vectors. Any thread.
void strided_lanes(const std::byte* from, int64_t stride, int64_t element_bytes, std::byte* to, int64_t count);

}  // namespace meshd::kernels
