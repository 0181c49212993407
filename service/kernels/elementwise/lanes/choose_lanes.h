// Loops of select_and_scatter over lanes with different choices. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshd::kernels {

/// Where keeps is false, `kept` becomes `next`, and choices `offset`. Elements of 1, 2, 4, 8 or 16 bytes.
void choose_lanes(const bool* keeps, const std::byte* next, std::byte* kept, int64_t element_bytes, int32_t* choices,
                  int32_t offset, int64_t count);

/// Where keeps is false, `values` become `otherwise`.
void keep_lanes(const bool* keeps, const std::byte* otherwise, std::byte* values, int64_t element_bytes, int64_t count);

/// equal = choices are `wanted`, lane by lane; true when any is.
bool lanes_equal(const int32_t* choices, int32_t wanted, bool* equal, int64_t count);

/// Where `chosen`, sums become `combined` if there was a sum, else `first`; then there is one.
void put_lanes(const bool* chosen, const std::byte* combined, const std::byte* first, std::byte* sums, bool* has_sum,
               int64_t element_bytes, int64_t count);

}  // namespace meshd::kernels
