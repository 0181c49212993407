#include "service/ir/type.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace meshd::ir {
namespace {

std::string dim_text(int64_t size) { return size == tensor::kDynamicDim ? "?" : std::to_string(size); }

/// ", #stablehlo.bounds<8, ?>", or nothing.
std::string bounds_text(const tensor::Dims& bounds) {
  if (bounds.empty()) return {};
  std::string out = ", #stablehlo.bounds<";
  for (size_t i = 0; i < bounds.size(); ++i) out += (i == 0 ? "" : ", ") + dim_text(bounds[i]);
  return out + ">";
}

std::string tensor_text(const Type& type) {
  if (!type.is_quantized())
    return fmt::format("tensor<{}{}>", tensor::to_string(type.tensor), bounds_text(type.bounds));
  std::string out = "tensor<";
  for (const int64_t size : type.dims()) out += dim_text(size) + "x";
  return fmt::format("{}{}{}>", out, to_string(*type.quantization), bounds_text(type.bounds));
}

}  // namespace

Type storage_type(Type type) {
  type.quantization = {};
  for (Type& element : type.elements) element = storage_type(std::move(element));
  return type;
}

Type expressed_type(const Type& type) {
  if (!type.is_quantized()) return type;
  Type out = Type::of({type.quantization->expressed, type.dims()});
  out.bounds = type.bounds;
  return out;
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
