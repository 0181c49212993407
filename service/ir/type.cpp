#include "service/ir/type.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace meshd::ir {
namespace {

std::string tensor_text(const Type& type) {
  if (!type.is_quantized()) return fmt::format("tensor<{}>", tensor::to_string(type.tensor));
  std::string out = "tensor<";
  for (const int64_t size : type.dims()) out += (size == tensor::kDynamicDim ? "?" : std::to_string(size)) + "x";
  return fmt::format("{}{}>", out, to_string(*type.quantization));
}

}  // namespace

Type storage_type(Type type) {
  type.quantization = {};
  for (Type& element : type.elements) element = storage_type(std::move(element));
  return type;
}

Type expressed_type(const Type& type) {
  return type.is_quantized() ? Type::of({type.quantization->expressed, type.dims()}) : type;
}

Type scalar_of(const Type& tensor) {
  Type out = Type::of({tensor.dtype(), {}});
  if (tensor.is_quantized() && !tensor.quantization->is_per_axis()) out.quantization = tensor.quantization;
  return out;
}

bool has_quantized(const Type& type) {
  return type.is_quantized() || std::any_of(type.elements.begin(), type.elements.end(), has_quantized);
}

std::string to_string(const Type& type) {
  switch (type.kind) {
    case TypeKind::kToken:
      return "!stablehlo.token";
    case TypeKind::kTensor:
      return tensor_text(type);
    case TypeKind::kTuple:
      break;
  }
  std::string out = "tuple<";
  for (size_t i = 0; i < type.elements.size(); ++i)
    out += fmt::format("{}{}", i ? ", " : "", to_string(type.elements[i]));
  return out + ">";
}

}  // namespace meshd::ir
