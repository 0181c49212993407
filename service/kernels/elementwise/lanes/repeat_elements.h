// Lanes that repeat an element, and lanes that repeat each of some elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

/// Elements that become runs of `count` copies each, one run behind the other.
struct ElementRuns {
  const std::byte* elements = nullptr;
  int64_t stride_bytes = 0;  ///< from an element to the next
  int64_t runs = 0;          ///< so many elements
  int64_t count = 0;
};
/// Of 1, 2, 4, 8 or 16 bytes, aligned or not. Any thread.
void repeat_elements(const ElementRuns& runs, int64_t element_bytes, std::byte* to);

/// Writes `count` copies of an element of 1, 2, 4, 8 or 16 bytes; the element may be right before them.
void repeat_element(const std::byte* element, int64_t element_bytes, std::byte* to, int64_t count);

/// Repeats the last of `lanes` elements over the rest of a block of kBlockLanes.
void pad_block(std::byte* block, int64_t element_bytes, int64_t lanes);

}  // namespace meshd::kernels
