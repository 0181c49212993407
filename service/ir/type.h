// Types of values in a program.
#pragma once

#include <string>
#include <vector>

#include "service/tensor/shape.h"

namespace meshd::ir {

enum class TypeKind : uint8_t { kTensor, kToken, kTuple };

/// A tensor type, a token, or a tuple of types.
struct Type {
  TypeKind kind = TypeKind::kTensor;
  tensor::TensorType tensor;   ///< valid for kTensor
  std::vector<Type> elements;  ///< valid for kTuple

  static Type of(tensor::TensorType type) { return {TypeKind::kTensor, std::move(type), {}}; }
  static Type token() { return {TypeKind::kToken, {}, {}}; }
  [[nodiscard]] bool is_tensor() const { return kind == TypeKind::kTensor; }
  [[nodiscard]] bool is_token() const { return kind == TypeKind::kToken; }
  [[nodiscard]] bool is_tuple() const { return kind == TypeKind::kTuple; }
  [[nodiscard]] const tensor::Dims& dims() const { return tensor.dims; }
  [[nodiscard]] tensor::DType dtype() const { return tensor.dtype; }
  [[nodiscard]] int64_t rank() const { return tensor.rank(); }

  friend bool operator==(const Type&, const Type&) = default;
};

/// tensor<2x3xf32>, !stablehlo.token, tuple<...>
std::string to_string(const Type& type);

}  // namespace meshd::ir
