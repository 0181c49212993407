// Products of tiny matrices side by side: each lane of a vector has a product of its own, so that none is too short for
// vectors. Private to product/.
//
// Example: 3 x 3 times 3 x 3 with AVX2: the elements of 8 left matrices become 9 vectors, those of 8 right ones as
// many; 27 multiplications of vectors make 9 vectors of sums, which become 8 matrices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/kernels/product/gemm.h"

namespace meshd::kernels {

/// Most elements of a matrix.
inline constexpr int64_t kMostSideBySide = 64;

/// Elements of a matrix are next to each other, by rows or by columns.
struct SideBySideShape {
  int64_t m, n, k;
  MatrixLayout a, b;
  int64_t a_step, b_step;  // elements from a matrix to the next
};

using SideBySide = void (*)(const SideBySideShape& shape, const std::byte* a, const std::byte* b, std::byte* c,
                            int64_t count);

/// The loop of this processor; null for types other than f32 and f64.
SideBySide side_by_side(tensor::DType dtype);

/// Elements of a vector on this processor.
int64_t vector_lanes(tensor::DType dtype);

}  // namespace meshd::kernels
