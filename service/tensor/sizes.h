// Validates a type's sizes against overflow, once where a type comes from outside, so that later code need not.
#pragma once

#include <algorithm>

#include "service/tensor/shape.h"

namespace meshd::tensor {

/// The most dimensions of a tensor, in programs and of arrays.
inline constexpr int64_t kMaxRank = 64;

/// True when the bytes of a tensor with these sizes fit in 63 bits, a size of 0 counted as 1: strides and offsets
/// within tensors without elements fit then as well. Dynamic sizes count as 1; other negative ones do not fit.
inline bool sizes_fit(const TensorType& type) {
  int64_t bytes = size_bytes(type.dtype);
  return std::all_of(type.dims.begin(), type.dims.end(), [&](int64_t size) {
    if (size == kDynamicDim) return true;
    return size >= 0 && !__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  });
}

/// Throws invalid_array for more than kMaxRank dimensions and for sizes that do not fit.
void require_sizes(const TensorType& type);

}  // namespace meshd::tensor
