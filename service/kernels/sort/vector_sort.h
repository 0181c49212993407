// Highway's vector sort behind plain functions. Unsigned integers only: on floats its version 1.0.3 loses elements
// where there is a NaN.
#pragma once

#include <cstdint>

#include "service/core/checkpoint.h"

namespace meshd::kernels {

/// An unsigned integer of 128 bits in two halves.
struct alignas(16) Wide128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator<(const Wide128& a, const Wide128& b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};

/// Sorts `count` keys in ascending order. Any thread.
void vector_sort(uint32_t* keys, int64_t count);
void vector_sort(uint64_t* keys, int64_t count);
void vector_sort(Wide128* keys, int64_t count);

/// The same for lines of any length: a long one is dealt into buckets first, so that it passes checkpoints. `spare` is
/// memory for as many keys.
void vector_sort(uint32_t* keys, uint32_t* spare, int64_t count, core::Checkpoint* checkpoint);
void vector_sort(uint64_t* keys, uint64_t* spare, int64_t count, core::Checkpoint* checkpoint);
void vector_sort(Wide128* keys, Wide128* spare, int64_t count, core::Checkpoint* checkpoint);

}  // namespace meshd::kernels
