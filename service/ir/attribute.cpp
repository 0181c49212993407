#include "service/ir/attribute.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "service/core/error.h"

namespace meshd::ir {
namespace {

[[noreturn]] void wrong_kind(std::string_view name, std::string_view expected) {
  throw core::Error("invalid_program", "attribute '" + std::string(name) + "' must be " + std::string(expected));
}

template <typename T>
std::vector<int64_t> widen(const std::vector<std::byte>& bytes) {
  std::vector<int64_t> out(bytes.size() / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int64_t>(value);
  }
  return out;
}

std::vector<int64_t> stored_ints(const DenseAttr& dense) {
  return tensor::with_integer(
      dense.type.dtype, [&]<typename T>(T) { return widen<T>(*dense.bytes); },
      [&]() -> std::vector<int64_t> {
        throw core::Error("invalid_program", "expected a constant of integers, got one of " +
                                                 std::string(tensor::row(dense.type.dtype).stablehlo));
      });
}

std::vector<int64_t> ints_of(const Attribute& attribute, std::string_view name) {
  if (const auto* array = attribute.as<IntArrayAttr>()) return array->values;
  if (const auto* dense = attribute.as<DenseAttr>()) return dense_ints(*dense);
  if (const auto* list = attribute.as<ArrayAttr>()) {
    std::vector<int64_t> out;
    for (const Attribute& element : list->values) {
      const auto* integer = element.as<IntegerAttr>();
      if (integer == nullptr) wrong_kind(name, "a list of integers");
      out.push_back(integer->value);
    }
    return out;
  }
  wrong_kind(name, "a list of integers");
}

}  // namespace

Attribute integer_attr(int64_t value) { return {IntegerAttr{value, "i64"}}; }

Attribute int_array_attr(std::vector<int64_t> values) { return {IntArrayAttr{std::move(values), "i64"}}; }

DenseAttr dense_integers_attr(const std::vector<int64_t>& values, tensor::Dims dims) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{tensor::DType::kInt64, std::move(dims)},
          false,
          std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end())};
}

DenseAttr splat_attr(tensor::TensorType type, std::vector<std::byte> element) {
  return {std::move(type), true, std::make_shared<const std::vector<std::byte>>(std::move(element))};
}

const Attribute* find(const AttributeList& list, std::string_view name) {
  for (const auto& [key, value] : list) {
    if (key == name) return &value;
  }
  return nullptr;
}

void set(AttributeList& list, std::string_view name, Attribute value) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const NamedAttribute& entry) { return entry.name == name; });
  if (found == list.end()) {
    list.push_back({std::string(name), std::move(value)});
  } else {
    found->value = std::move(value);
  }
}

int64_t int_or(const AttributeList& list, std::string_view name, int64_t otherwise) {
  const Attribute* attribute = find(list, name);
  if (attribute == nullptr) return otherwise;
  if (const auto* integer = attribute->as<IntegerAttr>()) return integer->value;
  wrong_kind(name, "an integer");
}

bool bool_or(const AttributeList& list, std::string_view name, bool otherwise) {
  const Attribute* attribute = find(list, name);
  if (attribute == nullptr) return otherwise;
  if (attribute->as<Unit>() != nullptr) return true;
  if (const auto* integer = attribute->as<IntegerAttr>()) return integer->value != 0;
  wrong_kind(name, "true or false");
}

std::vector<int64_t> ints_or(const AttributeList& list, std::string_view name, std::vector<int64_t> otherwise) {
  const Attribute* attribute = find(list, name);
  return attribute == nullptr ? std::move(otherwise) : ints_of(*attribute, name);
}

std::vector<int64_t> ints(const AttributeList& list, std::string_view name) {
  const Attribute* attribute = find(list, name);
  if (attribute == nullptr) throw core::Error("invalid_program", "attribute '" + std::string(name) + "' is missing");
  return ints_of(*attribute, name);
}

std::string string_or(const AttributeList& list, std::string_view name, std::string otherwise) {
  const Attribute* attribute = find(list, name);
  if (attribute == nullptr) return otherwise;
  if (const auto* text = attribute->as<StringAttr>()) return text->value;
  if (const auto* word = attribute->as<EnumAttr>()) return word->value;
  if (const auto* symbol = attribute->as<SymbolAttr>()) return symbol->name;
  wrong_kind(name, "a string");
}

const DictAttr& dict(const AttributeList& list, std::string_view name) {
  const Attribute* attribute = find(list, name);
  if (attribute == nullptr) throw core::Error("invalid_program", "attribute '" + std::string(name) + "' is missing");
  const auto* entries = attribute->as<DictAttr>();
  if (entries == nullptr) wrong_kind(name, "a dictionary");
  return *entries;
}

std::vector<int64_t> dense_ints(const DenseAttr& dense) {
  // Attributes that are read this way are small; a splat of a huge type is a mistake or an attack.
  constexpr int64_t kMaxElements = int64_t{1} << 24;
  if (dense.splat && tensor::element_count(dense.type) > kMaxElements) {
    throw core::Error("invalid_program", "a constant of integers that is an attribute has too many elements");
  }
  std::vector<int64_t> values = stored_ints(dense);
  if (dense.splat && !values.empty()) values.assign(static_cast<size_t>(tensor::element_count(dense.type)), values[0]);
  return values;
}

}  // namespace meshd::ir
