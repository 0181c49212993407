// Copies of many groups of few elements: pixels of three channels, points of three coordinates, pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace meshd::kernels {

/// Groups have at least 2 elements and at most so many.
inline constexpr int64_t kMaxGroup = 8;

/// One side of the copy, in bytes.
struct GroupSide {
  int64_t step = 0;    ///< from a group to the next
  int64_t stride = 0;  ///< from an element of a group to the next
};

/// `count` groups of `size` elements of `element_bytes` (1, 2, 4, 8 or 16): element k of group i goes from
/// `src + i * src_side.step + k * src_side.stride` to `dst + i * dst_side.step + k * dst_side.stride`. Neither side
/// need be aligned; they do not overlap. Groups that are dense on one side and whose elements are rows on the other are
/// interleaved, or taken apart, in whole vectors; so are dense groups of which each is reversed. Any thread.
struct Groups {
  int64_t count = 0;
  int64_t size = 1;
  int64_t element_bytes = 0;
  GroupSide dst;
  GroupSide src;
};
void copy_groups(std::byte* dst, const std::byte* src, const Groups& groups);

/// Rows that are interleaved at once, at most.
inline constexpr size_t kMostInterleaved = 4;

/// Dense groups of 2 to kMostInterleaved elements, of which each row has one: element i of row k becomes element k of
/// group i. Rows are anywhere, and not in `dst`; else as copy_groups.
void interleave(std::byte* dst, std::span<const std::byte* const> rows, int64_t count, int64_t element_bytes);

}  // namespace meshd::kernels
