// The lanes of an iota: numbers that count up, each several times in a row, again and again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Lane i is first + i / repeat % size, converted to the type as from int64. `size` and `repeat` are 1 or more.
///
/// Example: first 5, size 2, repeat 3 is 5 5 5 6 6 6 5 5 5 6 6 6 5 ...
struct CountedLanes {
  int64_t first = 0;
  int64_t size = 1;
  int64_t repeat = 1;
};

/// Writes lanes [start, start + count); the type is one that int64 converts to. Any thread.
void count_lanes(const CountedLanes& lanes, tensor::DType dtype, int64_t start, int64_t count, std::byte* to);

}  // namespace meshd::kernels
