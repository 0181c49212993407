// Elements read backwards, as a reversed dim has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

/// Lane i becomes the element that lies i elements before `from`. Of 1, 2, 4, 8 or 16 bytes.
void reverse_lanes(const std::byte* from, int64_t element_bytes, std::byte* to, int64_t count);

}  // namespace meshd::kernels
