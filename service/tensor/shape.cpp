#include "service/tensor/shape.h"

#include <fmt/core.h>

namespace meshd::tensor {

Dims row_major_strides(std::span<const int64_t> dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

std::string to_string(const TensorType& type) {
  std::string out;
  for (const int64_t dim : type.dims) out += (dim == kDynamicDim ? std::string("?") : std::to_string(dim)) + "x";
  out += row(type.dtype).stablehlo;
  return out;
}

std::string to_string(std::span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += fmt::format("{}{}", i ? "," : "", dims[i]);
  return out + "]";
}

}  // namespace meshd::tensor
