// Types of values in a program.
#pragma once

#include <string>
#include <vector>

#include "service/ir/quantization.h"
#include "service/tensor/shape.h"

namespace meshd::ir {

enum class TypeKind : uint8_t { kTensor, kToken, kTuple };

/// A tensor type, a token, or a tuple of types.
struct Type {
  TypeKind kind = TypeKind::kTensor;
  tensor::TensorType tensor;   ///< valid for kTensor
  std::vector<Type> elements;  ///< valid for kTuple
  /// Of a tensor with quantised elements; `tensor` has the storage type then. From the parser to legalize_quantized().
  QuantizationRef quantization = {};
  /// Of a tensor with dynamic dimensions: the most elements that each may have, kDynamicDim where nothing says so.
  /// Empty: no dimension has a bound.
  tensor::Dims bounds = {};

  static Type of(tensor::TensorType type) { return {TypeKind::kTensor, std::move(type), {}, {}}; }
  static Type token() { return {TypeKind::kToken, {}, {}, {}}; }
  [[nodiscard]] bool is_tensor() const { return kind == TypeKind::kTensor; }
  [[nodiscard]] bool is_token() const { return kind == TypeKind::kToken; }
  [[nodiscard]] bool is_tuple() const { return kind == TypeKind::kTuple; }
  [[nodiscard]] bool is_bounded() const { return !bounds.empty(); }
  [[nodiscard]] bool is_quantized() const { return static_cast<bool>(quantization); }
  [[nodiscard]] const tensor::Dims& dims() const { return tensor.dims; }
  [[nodiscard]] tensor::DType dtype() const { return tensor.dtype; }
  [[nodiscard]] int64_t rank() const { return tensor.rank(); }

  friend bool operator==(const Type&, const Type&) = default;
};

/// The same type with the integers that are stored in place of quantised elements, also within tuples.
Type storage_type(Type type);
/// A tensor of the floats that the elements stand for; other types themselves.
Type expressed_type(const Type& type);
/// The type of one element of a tensor. What is quantised per axis has no such type that is quantised: its parameters
/// belong to a dimension, which a scalar lacks, so that the scalar is a plain integer.
Type scalar_of(const Type& tensor);
/// Whether the type is quantised, or a tuple with such an element.
bool has_quantized(const Type& type);

/// tensor<2x3xf32>, tensor<2x!quant.uniform<i8:f32, 5.0e-01>>, tensor<?x3xf32, #stablehlo.bounds<8, ?>>,
/// !stablehlo.token, tuple<...>
std::string to_string(const Type& type);

}  // namespace meshd::ir
