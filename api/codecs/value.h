// VALUE of the API: {"dtype", "shape", "data" or "base64"}, and the sugar beside it (numbers, booleans, nested lists
// where the dtype is known). Dense row-major bytes on our side.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/json.h"
#include "service/tensor/shape.h"

namespace meshd::api {

/// A dense value: row-major bytes.
struct DenseValue {
  tensor::TensorType type;
  std::vector<std::byte> bytes;
};

enum class ValueEncoding : uint8_t { kJson, kBase64 };

/// Reads a VALUE with inline data. `expected`: the type that sugar takes, and that objects are not held to (the caller
/// compares). Notes every mistake under `pointer`; nothing is returned then.
std::optional<DenseValue> read_value(const Json& json, const tensor::TensorType* expected, const std::string& pointer,
                                     core::Diagnostics& wrong);
/// Numbers, booleans, strings for special values, [re, im] pairs, nested to `type`'s shape. Notes the first place that
/// does not fit.
std::optional<std::vector<std::byte>> read_nested(const Json& json, const tensor::TensorType& type,
                                                  const std::string& pointer, core::Diagnostics& wrong);

/// Appends "dtype":...,"shape":...,"data":... or "base64":... (no braces).
void append_value_fields(std::string& out, const tensor::TensorType& type, std::span<const std::byte> bytes,
                         ValueEncoding encoding);
/// Appends nested lists.
void append_nested(std::string& out, const tensor::TensorType& type, std::span<const std::byte> bytes);

}  // namespace meshd::api
