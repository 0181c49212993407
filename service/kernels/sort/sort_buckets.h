// Sample sort of a long line of keys in steps that several threads may share: a sorted sample gives the bounds of
// buckets, keys are counted and dealt to their buckets piece by piece, and then each bucket is sorted by itself.
//
// Example, 4 buckets, bounds 10, 20, 30: the keys 25 7 31 20 go to buckets 2 0 3 2. Two pieces with counts (1 0 2 1)
// and (2 1 0 0): buckets begin at 0, 3, 4, 6, and the second piece deals to 1, 3, 6 and 7.
#pragma once

#include <cstdint>
#include <span>

#include "service/kernels/sort/vector_sort.h"

namespace meshd::kernels {

inline constexpr int64_t kSortBuckets = 16;

/// bounds[0 .. kSortBuckets - 2], ascending, from a sample of the keys. The same keys give the same bounds. Any thread.
template <typename T>
void choose_bounds(const T* keys, int64_t count, T* bounds);

/// The bucket of each key, which is how many bounds are not above it, and how many keys each bucket gets.
template <typename T>
void count_in_buckets(const T* keys, int64_t count, const T* bounds, uint8_t* buckets, int64_t* counts);

/// Where each bucket begins when the keys of all pieces are dealt, and where it ends: kSortBuckets + 1 places. `counts`
/// has those of all pieces, kSortBuckets for each.
void bucket_starts(std::span<const int64_t> counts, int64_t* starts);

/// Deals the keys of piece `piece` to their buckets in `to`, behind those of the pieces before it.
template <typename T>
void deal_to_buckets(const T* keys, const uint8_t* buckets, int64_t count, std::span<const int64_t> counts,
                     int64_t piece, T* to);

}  // namespace meshd::kernels
