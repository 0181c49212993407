#include "api/codecs/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "api/codecs/base64.h"
#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::api {
namespace {

using tensor::DType;

// Elements of a nested list on their way to bytes: floats as doubles, integers by their bits.
struct Collector {
  tensor::TensorType type;
  std::vector<double> reals;       ///< floats; complex as pairs
  std::vector<uint64_t> integers;  ///< integers and booleans, two's complement
};

std::optional<double> real_of(const Json& json) {
  if (const auto* number = json.as<JsonNumber>()) return number->as_double();
  if (const auto* text = json.as<std::string>()) {
    if (*text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (*text == "Infinity") return std::numeric_limits<double>::infinity();
    if (*text == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  return std::nullopt;
}

std::string range_text(DType dtype) {
  const int bits = tensor::row(dtype).bits;
  if (tensor::is_signed_integer(dtype)) {
    const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
    return std::to_string(-high - 1) + " to " + std::to_string(high);
  }
  const uint64_t high = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  return "0 to " + std::to_string(high);
}

std::optional<uint64_t> integer_of(const JsonNumber& number, DType dtype) {
  if (number.kind == JsonNumber::Kind::kFloat) return std::nullopt;
  const int bits = tensor::row(dtype).bits;
  if (number.kind == JsonNumber::Kind::kUnsigned) {
    return dtype == DType::kUint64 ? std::optional(number.u) : std::nullopt;
  }
  if (tensor::is_signed_integer(dtype)) {
    const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
    if (number.i > high || number.i < -high - 1) return std::nullopt;
    return static_cast<uint64_t>(number.i);
  }
  const uint64_t high = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  if (number.i < 0 || static_cast<uint64_t>(number.i) > high) return std::nullopt;
  return static_cast<uint64_t>(number.i);
}

std::optional<uint64_t> integer_of(const Json& json, DType dtype) {
  if (const auto* number = json.as<JsonNumber>()) return integer_of(*number, dtype);
  const auto* text = json.as<std::string>();
  if (text == nullptr || text->empty()) return std::nullopt;
  JsonNumber number;
  const char* end = text->data() + text->size();
  if (const auto parsed = std::from_chars(text->data(), end, number.i); parsed.ec == std::errc{} && parsed.ptr == end) {
    return integer_of(number, dtype);
  }
  number.kind = JsonNumber::Kind::kUnsigned;
  const auto parsed = std::from_chars(text->data(), end, number.u);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return integer_of(number, dtype);
}

// One element; false with a note when it does not fit.
bool collect_element(const Json& json, Collector& out, const std::string& pointer, core::Diagnostics& wrong) {
  const DType dtype = out.type.dtype;
  if (dtype == DType::kBool) {
    if (const auto* value = json.as<bool>()) {
      out.integers.push_back(*value ? 1 : 0);
      return true;
    }
    wrong.add(pointer, "expected true or false, got " + std::string(json.kind_name()));
    return false;
  }
  if (tensor::is_integer(dtype)) {
    if (const auto value = integer_of(json, dtype)) {
      out.integers.push_back(*value);
      return true;
    }
    wrong.add(pointer,
              "expected a whole number from " + range_text(dtype) + " (" + std::string(tensor::name(dtype)) + ")");
    return false;
  }
  if (tensor::is_complex(dtype)) {
    if (json.size() == 2) {
      const auto re = real_of(json.at(0));
      const auto im = real_of(json.at(1));
      if (re && im) {
        out.reals.push_back(*re);
        out.reals.push_back(*im);
        return true;
      }
    }
    wrong.add(pointer, "expected [re, im], got " + std::string(json.kind_name()));
    return false;
  }
  if (const auto value = real_of(json)) {
    out.reals.push_back(*value);
    return true;
  }
  wrong.add(pointer, "expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", got " + std::string(json.kind_name()));
  return false;
}

bool collect(const Json& json, size_t dim, Collector& out, const std::string& pointer, core::Diagnostics& wrong) {
  if (dim == out.type.dims.size()) return collect_element(json, out, pointer, wrong);
  const auto expected = static_cast<size_t>(out.type.dims[dim]);
  if (!json.is_array() || json.size() != expected) {
    wrong.add(pointer, "expected a list of " + std::to_string(expected) + " (dimension " + std::to_string(dim) +
                           " of " + tensor::to_string(std::span<const int64_t>(out.type.dims)) + "), got " +
                           (json.is_array() ? "one of " + std::to_string(json.size()) : std::string(json.kind_name())));
    return false;
  }
  const bool is_last = dim + 1 == out.type.dims.size();
  if (const auto* numbers = json.as<JsonNumbers>();
      numbers != nullptr && is_last && !tensor::is_complex(out.type.dtype)) {
    if (tensor::is_float(out.type.dtype)) {
      if (const std::vector<double>* reals = numbers->reals()) {
        out.reals.insert(out.reals.end(), reals->begin(), reals->end());
        return true;
      }
      for (size_t i = 0; i < numbers->size(); ++i) out.reals.push_back((*numbers)[i].as_double());
      return true;
    }
    if (tensor::is_integer(out.type.dtype)) {
      for (size_t i = 0; i < numbers->size(); ++i) {
        const auto value = integer_of((*numbers)[i], out.type.dtype);
        if (!value) {
          wrong.add(pointer + "/" + std::to_string(i), "expected a whole number from " + range_text(out.type.dtype) +
                                                           " (" + std::string(tensor::name(out.type.dtype)) + ")");
          return false;
        }
        out.integers.push_back(*value);
      }
      return true;
    }
  }
  if (const auto* items = json.as<JsonArray>()) {
    for (size_t i = 0; i < items->size(); ++i) {
      if (!collect((*items)[i], dim + 1, out, pointer + "/" + std::to_string(i), wrong)) return false;
    }
    return true;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    if (!collect(json.at(i), dim + 1, out, pointer + "/" + std::to_string(i), wrong)) return false;
  }
  return true;
}

std::vector<std::byte> to_bytes(const Collector& from) {
  const DType dtype = from.type.dtype;
  const auto width = static_cast<size_t>(tensor::size_bytes(dtype));
  std::vector<std::byte> out(static_cast<size_t>(tensor::byte_count(from.type)));
  if (!tensor::is_float(dtype) && !tensor::is_complex(dtype)) {
    for (size_t i = 0; i < from.integers.size(); ++i) std::memcpy(out.data() + i * width, &from.integers[i], width);
    return out;
  }
  const DType part = dtype == DType::kComplex64    ? DType::kFloat32
                     : dtype == DType::kComplex128 ? DType::kFloat64
                                                   : dtype;
  if (part == DType::kFloat64) {
    std::memcpy(out.data(), from.reals.data(), out.size());
    return out;
  }
  const kernels::ScalarKernel convert = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, DType::kFloat64, part);
  if (convert == nullptr)
    throw core::Error("unsupported_dtype",
                      "numbers of dtype " + std::string(tensor::name(dtype)) + " are not read from JSON; send base64");
  const auto* operand = reinterpret_cast<const std::byte*>(from.reals.data());
  convert(&operand, out.data(), static_cast<int64_t>(from.reals.size()));
  return out;
}

// Writes element i.
using Writer = void (*)(std::string&, const std::byte*);

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

Writer writer_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return [](std::string& out, const std::byte* at) { out += *at != std::byte{0} ? "true" : "false"; };
    case DType::kInt2:
    case DType::kInt4:
    case DType::kInt8:
      return [](std::string& out, const std::byte* at) { append_integer(out, load<int8_t>(at)); };
    case DType::kInt16:
      return [](std::string& out, const std::byte* at) { append_integer(out, load<int16_t>(at)); };
    case DType::kInt32:
      return [](std::string& out, const std::byte* at) { append_integer(out, load<int32_t>(at)); };
    case DType::kInt64:
      return [](std::string& out, const std::byte* at) { append_integer(out, load<int64_t>(at)); };
    case DType::kUint2:
    case DType::kUint4:
    case DType::kUint8:
      return [](std::string& out, const std::byte* at) { append_unsigned(out, load<uint8_t>(at)); };
    case DType::kUint16:
      return [](std::string& out, const std::byte* at) { append_unsigned(out, load<uint16_t>(at)); };
    case DType::kUint32:
      return [](std::string& out, const std::byte* at) { append_unsigned(out, load<uint32_t>(at)); };
    case DType::kUint64:
      return [](std::string& out, const std::byte* at) { append_unsigned(out, load<uint64_t>(at)); };
    case DType::kFloat32:
      return [](std::string& out, const std::byte* at) { append_float(out, load<float>(at)); };
    case DType::kFloat64:
      return [](std::string& out, const std::byte* at) { append_double(out, load<double>(at)); };
    case DType::kComplex64:
      return [](std::string& out, const std::byte* at) {
        out += '[';
        append_float(out, load<float>(at));
        out += ',';
        append_float(out, load<float>(at + 4));
        out += ']';
      };
    case DType::kComplex128:
      return [](std::string& out, const std::byte* at) {
        out += '[';
        append_double(out, load<double>(at));
        out += ',';
        append_double(out, load<double>(at + 8));
        out += ']';
      };
    default:
      return nullptr;
  }
}

// A row of finite floats goes straight into the text's memory: the shortest digits that read back, a point in each.
template <typename T>
void append_reals(std::string& out, const std::byte* at, int64_t count) {
  constexpr int64_t kElements = 256;
  constexpr size_t kLongest = 26;  // -2.2250738585072014e-308 and a comma, or "-Infinity"
  for (int64_t begin = 0; begin < count; begin += kElements) {
    const int64_t end = std::min(count, begin + kElements);
    const size_t size = out.size();
    out.resize(size + static_cast<size_t>(end - begin) * kLongest);
    char* to = out.data() + size;
    for (int64_t i = begin; i < end; ++i) {
      if (i > 0) *to++ = ',';
      const T value = load<T>(at + i * static_cast<int64_t>(sizeof(T)));
      if (!std::isfinite(value)) {
        std::string word;
        std::is_same_v<T, float> ? append_float(word, static_cast<float>(value)) : append_double(word, value);
        to = std::copy(word.begin(), word.end(), to);
        continue;
      }
      char* const stop = std::to_chars(to, to + kLongest, value).ptr;
      // 1 is a float here: say so, that a reader keeps it one.
      const bool is_whole = std::none_of(to, stop, [](char c) { return c == '.' || c == 'e'; });
      to = stop;
      if (is_whole) to = std::copy_n(".0", 2, to);
    }
    out.resize(static_cast<size_t>(to - out.data()));
  }
}

void append_level(std::string& out, const tensor::TensorType& type, size_t dim, Writer write, const std::byte*& at,
                  size_t width) {
  const tensor::Dims& dims = type.dims;
  if (dim == dims.size()) {
    write(out, at);
    at += width;
    return;
  }
  out += '[';
  const bool is_row = dim + 1 == dims.size();
  if (is_row && (type.dtype == DType::kFloat32 || type.dtype == DType::kFloat64)) {
    (type.dtype == DType::kFloat32 ? append_reals<float> : append_reals<double>)(out, at, dims[dim]);
    at += static_cast<size_t>(dims[dim]) * width;
  } else {
    for (int64_t i = 0; i < dims[dim]; ++i) {
      if (i > 0) out += ',';
      append_level(out, type, dim + 1, write, at, width);
    }
  }
  out += ']';
}

}  // namespace

namespace {

// A dynamic dimension has as many elements as the first list of its depth.
tensor::TensorType sized_by(const Json& json, tensor::TensorType type, size_t depth) {
  if (depth == type.dims.size()) return type;
  const auto size = json.is_array() ? static_cast<int64_t>(json.size()) : 0;
  if (type.dims[depth] == tensor::kDynamicDim) type.dims[depth] = size;
  if (size > 0) return sized_by(json.at(0), std::move(type), depth + 1);
  for (int64_t& dim : type.dims) dim = dim == tensor::kDynamicDim ? 0 : dim;
  return type;
}

}  // namespace

std::optional<std::vector<std::byte>> read_nested(const Json& json, const tensor::TensorType& type,
                                                  const std::string& pointer, core::Diagnostics& wrong) {
  Collector collector{type, {}, {}};
  if (!collect(json, 0, collector, pointer, wrong)) return std::nullopt;
  return to_bytes(collector);
}

std::optional<DenseValue> read_value(const Json& json, const tensor::TensorType* expected, const std::string& pointer,
                                     core::Diagnostics& wrong) {
  if (json.as<JsonObject>() == nullptr) {
    if (expected == nullptr) {
      wrong.add(pointer, "expected an object with dtype, shape and data, got " + std::string(json.kind_name()));
      return std::nullopt;
    }
    const tensor::TensorType type = sized_by(json, *expected, 0);
    auto bytes = read_nested(json, type, pointer, wrong);
    if (!bytes) return std::nullopt;
    return DenseValue{type, std::move(*bytes)};
  }
  ObjectReader reader(json, pointer, wrong);
  const auto dtype_name = reader.string("dtype");
  const auto shape = reader.integers("shape");
  const Json* data = reader.field("data");
  const Json* base64 = reader.field("base64");
  reader.finish();
  DenseValue out;
  bool ok = true;
  if (reader.field("dtype") == nullptr) reader.missing("dtype"), ok = false;
  if (reader.field("shape") == nullptr) reader.missing("shape"), ok = false;
  if (dtype_name) {
    const auto dtype = tensor::dtype_from_name(*dtype_name);
    if (!dtype) {
      wrong.add(reader.pointer("dtype"),
                quote(*dtype_name) + " is no dtype; known are bool, int8, ..., float32, bfloat16, complex64 and so on");
      ok = false;
    } else {
      out.type.dtype = *dtype;
    }
  }
  if (shape) {
    for (const int64_t dim : *shape) {
      if (dim < 0) {
        wrong.add(reader.pointer("shape"), "sizes are at least 0, got " + std::to_string(dim));
        ok = false;
      }
    }
    out.type.dims = *shape;
  }
  if ((data == nullptr) == (base64 == nullptr)) {
    wrong.add(pointer, "expected exactly one of data and base64");
    ok = false;
  }
  if (!ok || !dtype_name || !shape) return std::nullopt;
  if (data != nullptr) {
    auto bytes = read_nested(*data, out.type, reader.pointer("data"), wrong);
    if (!bytes) return std::nullopt;
    out.bytes = std::move(*bytes);
    return out;
  }
  const auto* text = base64->as<std::string>();
  auto bytes = text == nullptr ? std::nullopt : base64_decode(*text);
  const int64_t expected_bytes = tensor::byte_count(out.type);
  if (!bytes || static_cast<int64_t>(bytes->size()) != expected_bytes) {
    wrong.add(reader.pointer("base64"), "expected base64 of " + std::to_string(expected_bytes) + " bytes" +
                                            (bytes ? ", got " + std::to_string(bytes->size()) : std::string()));
    return std::nullopt;
  }
  out.bytes = std::move(*bytes);
  if (out.type.dtype == DType::kBool) {
    for (std::byte& byte : out.bytes) byte = byte != std::byte{0} ? std::byte{1} : std::byte{0};
  }
  return out;
}

void append_nested(std::string& out, const tensor::TensorType& type, std::span<const std::byte> bytes) {
  const Writer write = writer_of(type.dtype);
  if (write != nullptr) {
    // About as long as it gets: a text that grows is copied again and again.
    out.reserve(out.size() + static_cast<size_t>(tensor::byte_count(type)) * 3);
    const std::byte* at = bytes.data();
    append_level(out, type, 0, write, at, static_cast<size_t>(tensor::size_bytes(type.dtype)));
    return;
  }
  // Narrow floats are written as the float32 that equals them.
  const tensor::TensorType wide{DType::kFloat32, type.dims};
  std::vector<std::byte> converted(static_cast<size_t>(tensor::byte_count(wide)));
  const kernels::ScalarKernel convert =
      kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, type.dtype, DType::kFloat32);
  if (convert == nullptr)
    throw core::Error("unsupported_dtype",
                      std::string(tensor::name(type.dtype)) + " is not written as JSON numbers; ask for base64");
  const std::byte* operand = bytes.data();
  convert(&operand, converted.data(), tensor::element_count(type));
  append_nested(out, wide, converted);
}

void append_value_fields(std::string& out, const tensor::TensorType& type, std::span<const std::byte> bytes,
                         ValueEncoding encoding) {
  out += "\"dtype\":\"";
  out += tensor::name(type.dtype);
  out += "\",\"shape\":" + integer_list(type.dims);
  if (encoding == ValueEncoding::kBase64) {
    out += ",\"base64\":\"" + base64_encode(bytes) + "\"";
  } else {
    out += ",\"data\":";
    append_nested(out, type, bytes);
  }
}

}  // namespace meshd::api
