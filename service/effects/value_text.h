// The binary serialisation of values of effects and infeed entries.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/error.h"
#include "service/tensor/dense_value.h"

namespace meshd::effects {

/// "4x2xf32, i32": types of values, for messages.
std::string types_text(const std::vector<tensor::DenseValue>& values);

/// Copies of the values' bytes.
std::vector<std::vector<std::byte>> bytes_of(const std::vector<tensor::DenseValue>& values);

/// Values as a compact binary document: count, then dtype, dims and bytes of each.
std::string values_to_text(const std::vector<tensor::DenseValue>& values);
std::vector<tensor::DenseValue> values_from_text(std::string_view text);
/// The same from the front of `text`, which it consumes. Throws internal when it is malformed.
std::vector<tensor::DenseValue> read_values(std::string_view& text);

/// Numbers in such documents: in native byte order.
template <typename T>
void put_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
template <typename T>
T take_number(std::string_view& in) {
  if (in.size() < sizeof(T)) throw core::Error("internal", "a stored effect is cut short");
  T value;
  std::memcpy(&value, in.data(), sizeof(value));
  in.remove_prefix(sizeof(value));
  return value;
}

}  // namespace meshd::effects
