#include "service/effects/value_text.h"

#include <fmt/core.h>

namespace meshd::effects {

std::string types_text(const std::vector<tensor::DenseValue>& values) {
  std::string out;
  for (const tensor::DenseValue& value : values)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", tensor::to_string(value.type));
  return out;
}

std::vector<std::vector<std::byte>> bytes_of(const std::vector<tensor::DenseValue>& values) {
  std::vector<std::vector<std::byte>> out;
  for (const tensor::DenseValue& value : values) out.emplace_back(value.bytes().begin(), value.bytes().end());
  return out;
}

std::string values_to_text(const std::vector<tensor::DenseValue>& values) {
  std::string out;
  put_number<uint32_t>(out, static_cast<uint32_t>(values.size()));
  for (const tensor::DenseValue& value : values) {
    const std::string_view name = tensor::name(value.type.dtype);
    put_number<uint8_t>(out, static_cast<uint8_t>(name.size()));
    out.append(name);
    put_number<uint32_t>(out, static_cast<uint32_t>(value.type.dims.size()));
    for (const int64_t dim : value.type.dims) put_number<int64_t>(out, dim);
    out.append(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
  }
  return out;
}

std::vector<tensor::DenseValue> read_values(std::string_view& text) {
  std::vector<tensor::DenseValue> out(take_number<uint32_t>(text));
  for (tensor::DenseValue& value : out) {
    tensor::TensorType type;
    const auto length = take_number<uint8_t>(text);
    const auto dtype = tensor::dtype_from_name(text.substr(0, length));
    if (!dtype) throw core::Error("internal", "a stored effect has an unknown dtype");
    text.remove_prefix(length);
    type.dtype = *dtype;
    type.dims.resize(take_number<uint32_t>(text));
    for (int64_t& dim : type.dims) dim = take_number<int64_t>(text);
    const auto bytes = static_cast<size_t>(tensor::byte_count(type));
    if (text.size() < bytes) throw core::Error("internal", "a stored effect is cut short");
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    value = tensor::dense_copy(type, {data, bytes});
    text.remove_prefix(bytes);
  }
  return out;
}

std::vector<tensor::DenseValue> values_from_text(std::string_view text) { return read_values(text); }

}  // namespace meshd::effects
