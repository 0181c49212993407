// Shapes of dense row-major tensors and their arithmetic: element counts, bytes, strides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "service/core/checked_math.h"
#include "service/tensor/dtype.h"

namespace meshd::tensor {

/// Sizes of dimensions, in elements, major first.
using Dims = std::vector<int64_t>;

/// A dimension whose size is known only when the program is called.
inline constexpr int64_t kDynamicDim = INT64_MIN;

/// A dtype and sizes. Variables are named by whether it is global or local (global_type, local_type).
struct TensorType {
  DType dtype = DType::kFloat32;
  Dims dims;

  friend bool operator==(const TensorType&, const TensorType&) = default;
  [[nodiscard]] int64_t rank() const { return static_cast<int64_t>(dims.size()); }
};

/// Number of elements; throws invalid_array when it does not fit in 63 bits. No dimension may be dynamic.
inline int64_t element_count(std::span<const int64_t> dims) { return core::checked_product(dims); }
inline int64_t element_count(const TensorType& type) { return core::checked_product(type.dims); }
/// Of dims[begin, end): 1 where there is none.
inline int64_t element_count(std::span<const int64_t> dims, size_t begin, size_t end) {
  return begin < end ? element_count(dims.subspan(begin, end - begin)) : 1;
}
/// Bytes of all elements.
inline int64_t byte_count(const TensorType& type) {
  return core::checked_mul(element_count(type), size_bytes(type.dtype));
}

/// Row-major strides in elements: (2, 3, 4) -> (12, 4, 1).
Dims row_major_strides(std::span<const int64_t> dims);

/// "2x3xf32", "f32" for rank 0, "?x3xf32" with a dynamic dimension: as program text writes it inside tensor<>.
std::string to_string(const TensorType& type);
/// "[2,3]".
std::string to_string(std::span<const int64_t> dims);

}  // namespace meshd::tensor
