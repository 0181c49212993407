// Products of a matrix and a vector, by loops of our own: what they cost is reading the matrix, once. Private to
// product/.
//
// Two loops, by how the matrix lies. Its rows meet the whole vector: each result is one row's dot product (`kDots`,
// y = M x). Or each row is weighted by one element of the vector, and the rows are added up (`kWeightedRows`, y = x M).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/core/checkpoint.h"
#include "service/kernels/product/gemm.h"

namespace meshd::kernels {

/// In elements. Rows of the matrix are contiguous.
struct VectorShape {
  int64_t results = 0;  ///< rows of the matrix for kDots, columns for kWeightedRows
  int64_t terms = 0;    ///< of each sum: the vector's elements
  int64_t pitch = 0;    ///< between rows of the matrix
  int64_t step = 1;     ///< between the vector's elements; kDots: 1
};

enum class VectorOrder : uint8_t { kDots, kWeightedRows };

/// Sums are made in an order that follows from `terms` alone. Of floats those of more than some hundred terms are no
/// chain: rounding errors of long chains add up. `checkpoint` may be null.
using VectorLoop = void (*)(const VectorShape& shape, const std::byte* matrix, const std::byte* vector,
                            std::byte* result, core::Checkpoint* checkpoint);

/// The loop of this processor; null for types other than f32 and f64.
VectorLoop vector_loop(tensor::DType dtype, VectorOrder order);

/// A product with m = 1 or n = 1 as one of a matrix and a vector.
struct VectorForm {
  VectorOrder order = VectorOrder::kDots;
  VectorShape shape;
  bool matrix_is_b = false;
};

/// None where neither m nor n is 1, or the matrix has no contiguous lines.
std::optional<VectorForm> vector_form(const GemmSpec& spec);

}  // namespace meshd::kernels
