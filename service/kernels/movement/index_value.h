// Reading an index from an array of any integer type: start indices of dynamic slices, gathers and scatters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// The integer of type T at `element`; unsigned values beyond int64 become its maximum, which is out of bounds
/// anywhere.
template <typename T>
int64_t index_as(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  if constexpr (sizeof(T) == sizeof(int64_t) && std::numeric_limits<T>::min() == 0) {
    return value > static_cast<T>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

/// Throws unsupported_dtype.
[[noreturn]] void refuse_index_type(tensor::DType dtype);

/// visit(T{}) with the type that elements of an integer dtype have in memory. Throws unsupported_dtype for other
/// dtypes.
template <typename Visit>
auto with_index_type(tensor::DType dtype, Visit&& visit) {
  const auto refuse = [&]() -> decltype(visit(int64_t{})) { refuse_index_type(dtype); };
  return tensor::is_integer(dtype) ? tensor::with_integer(dtype, visit, refuse) : refuse();
}

/// The integer at `element`, of an integer dtype.
inline int64_t read_index(const std::byte* element, tensor::DType dtype) {
  return with_index_type(dtype, [element]<typename T>(T) { return index_as<T>(element); });
}

/// `start` clamped so that a window of `window` elements is inside a dimension of `size`.
constexpr int64_t clamp_start(int64_t start, int64_t window, int64_t size) {
  const int64_t last = size - window;
  return start < 0 ? 0 : (start > last ? last : start);
}

}  // namespace meshd::kernels
