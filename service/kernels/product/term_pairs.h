// How integers of 8 or 16 bits become pairs of 16 bits, for pair_tile_kernels() (tile_kernel.h). Private to product/.
//
// Example: int8 terms 1, -2 and 3 of a row are the pairs (1, -2) and (3, 0); the earlier term is in the lower half.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Of one type. Memory may have any alignment. Any thread.
struct TermPairs {
  /// Pairs of neighbours in a line of `count` terms; one without a neighbour gets a zero.
  void (*neighbours)(const std::byte* line, int64_t count, uint32_t* to) = nullptr;
  /// Pairs of an element of each of two lines; of zeros where `second` is null.
  void (*lines)(const std::byte* first, const std::byte* second, int64_t count, uint32_t* to) = nullptr;
};

/// Null where 16 bits with a sign do not hold the type. Static lifetime.
const TermPairs* find_term_pairs(tensor::DType dtype);

}  // namespace meshd::kernels
