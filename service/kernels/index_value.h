// Reading an index from an array of any integer type: start indices of dynamic slices, gathers and scatters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "service/core/error.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// The integer at `element`, of an integer dtype; unsigned values beyond int64 become its maximum, which is out of
/// bounds anywhere.
inline int64_t read_index(const std::byte* element, tensor::DType dtype) {
  using tensor::DType;
  const auto as = [element]<typename T>(T) {
    T value;
    std::memcpy(&value, element, sizeof(T));
    if constexpr (sizeof(T) == 8 && std::numeric_limits<T>::min() == 0) {
      return value > static_cast<T>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(value);
    } else {
      return static_cast<int64_t>(value);
    }
  };
  switch (dtype) {
    case DType::kInt2:
    case DType::kInt4:
    case DType::kInt8:
      return as(int8_t{});
    case DType::kInt16:
      return as(int16_t{});
    case DType::kInt32:
      return as(int32_t{});
    case DType::kInt64:
      return as(int64_t{});
    case DType::kUint2:
    case DType::kUint4:
    case DType::kUint8:
      return as(uint8_t{});
    case DType::kUint16:
      return as(uint16_t{});
    case DType::kUint32:
      return as(uint32_t{});
    case DType::kUint64:
      return as(uint64_t{});
    default:
      break;
  }
  throw core::Error("unsupported_dtype", "an index must be an integer, got " + std::string(tensor::name(dtype)));
}

/// `start` moved so that a window of `window` elements lies inside a dimension of `size`.
constexpr int64_t clamp_start(int64_t start, int64_t window, int64_t size) {
  const int64_t last = size - window;
  return start < 0 ? 0 : (start > last ? last : start);
}

}  // namespace meshd::kernels
