#include "api/codecs/value.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "api/codecs/base64.h"
#include "service/kernels/elementwise/scalar_op.h"

namespace meshd::api {
namespace {

using tensor::DType;

// Where the elements of a nested list go, in row-major order: the array's own bytes, or nowhere, to find what is wrong.
class Sink {
 public:
  Sink(const tensor::TensorType& type, std::byte* to) : type_(type), to_(to), width_(tensor::size_bytes(type.dtype)) {
    part_ = tensor::part_of(type.dtype);
    if (part_ == DType::kFloat32 || part_ == DType::kFloat64 || !(tensor::is_float(part_))) return;
    convert_ = kernels::find_scalar_kernel(kernels::ScalarOp::kConvert, DType::kFloat64, part_);
    if (convert_ == nullptr) {
      throw core::Error("unsupported_dtype", fmt::format("numbers of dtype {} are not read from JSON; send base64",
                                                         tensor::name(type.dtype)));
    }
  }

  [[nodiscard]] const tensor::TensorType& type() const { return type_; }
  void put_bits(uint64_t bits) { put(bits, static_cast<size_t>(width_)); }
  void put_real(double value) {
    if (part_ == DType::kFloat64) {
      put(value, sizeof(value));
    } else if (part_ == DType::kFloat32) {
      put(static_cast<float>(value), sizeof(float));
    } else {
      waiting_[count_++] = value;
      if (count_ == waiting_.size()) flush();
    }
  }
  // Narrow floats are converted by the kernels, many at once.
  void flush() {
    if (to_ != nullptr && count_ > 0) {
      const auto* operand = reinterpret_cast<const std::byte*>(waiting_.data());
      convert_(&operand, to_, static_cast<int64_t>(count_));
      to_ += static_cast<int64_t>(count_) * width_;
    }
    count_ = 0;
  }

 private:
  template <typename T>
  void put(T value, size_t size) {
    if (to_ == nullptr) return;
    std::memcpy(to_, &value, size);
    to_ += size;
  }

  const tensor::TensorType& type_;
  std::byte* to_;
  int64_t width_;
  DType part_ = DType::kFloat32;
  kernels::ScalarKernel convert_ = nullptr;
  std::array<double, 256> waiting_{};
  size_t count_ = 0;
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

std::string dtype_range(DType dtype) {
  const int bits = tensor::row(dtype).bits;
  if (tensor::is_signed_integer(dtype)) {
    const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
    return fmt::format("{} to {}", -high - 1, high);
  }
  const uint64_t high = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  return fmt::format("0 to {}", high);
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

std::string whole_number_of(DType dtype, const Json& json) {
  const auto* number = json.as<JsonNumber>();
  const bool is_float = number != nullptr && number->kind == JsonNumber::Kind::kFloat;
  return fmt::format("expected a whole number from {} ({}), got {}{}", dtype_range(dtype), tensor::name(dtype),
                     got_text(json), is_float ? ", which is float" : "");
}

// One element; false with a note when it does not fit.
bool put_element(const Json& json, Sink& out, const std::string& pointer, core::Diagnostics& wrong) {
  const DType dtype = out.type().dtype;
  if (dtype == DType::kBool) {
    if (const auto* value = json.as<bool>()) {
      out.put_bits(*value ? 1 : 0);
      return true;
    }
    wrong.add(pointer, fmt::format("expected true or false, got {}", json.kind_name()));
    return false;
  }
  if (tensor::is_integer(dtype)) {
    if (const auto value = integer_of(json, dtype)) {
      out.put_bits(*value);
      return true;
    }
    wrong.add(pointer, whole_number_of(dtype, json));
    return false;
  }
  if (tensor::is_complex(dtype)) {
    if (json.size() == 2) {
      const auto re = real_of(json.at(0));
      const auto im = real_of(json.at(1));
      if (re && im) {
        out.put_real(*re);
        out.put_real(*im);
        return true;
      }
    }
    wrong.add(pointer, fmt::format("expected [re, im], got {}", json.kind_name()));
    return false;
  }
  if (const auto value = real_of(json)) {
    out.put_real(*value);
    return true;
  }
  wrong.add(pointer, fmt::format(R"(expected a number, "NaN", "Infinity" or "-Infinity", got {})", json.kind_name()));
  return false;
}

// A row of plain numbers.
bool put_row(const JsonNumbers& numbers, Sink& out, const std::string& pointer, core::Diagnostics& wrong) {
  const DType dtype = out.type().dtype;
  bool good = true;
  if (tensor::is_float(dtype)) {
    numbers.each([&](size_t, const JsonNumber& number) {
      out.put_real(number.as_double());
      return true;
    });
    return true;
  }
  numbers.each([&](size_t i, const JsonNumber& number) {
    const auto value = integer_of(number, dtype);
    if (value) {
      out.put_bits(*value);
    } else {
      Json got;
      got.value = number;
      wrong.add(entry_pointer(pointer, i), whole_number_of(dtype, got));
      good = false;
    }
    return good;
  });
  return good;
}

bool put_nested(const Json& json, size_t dim, Sink& out, const std::string& pointer, core::Diagnostics& wrong) {
  const tensor::Dims& dims = out.type().dims;
  if (dim == dims.size()) return put_element(json, out, pointer, wrong);
  if (!json.is_array() || static_cast<int64_t>(json.size()) != dims[dim]) {
    wrong.add(pointer,
              fmt::format("expected a list of {} (dimension {} of {}), got {}", dims[dim], dim,
                          tensor::to_string(std::span<const int64_t>(dims)),
                          json.is_array() ? fmt::format("one of {}", json.size()) : std::string(json.kind_name())));
    return false;
  }
  const auto* numbers = json.as<JsonNumbers>();
  const DType dtype = out.type().dtype;
  if (numbers != nullptr && dim + 1 == dims.size() && (tensor::is_float(dtype) || tensor::is_integer(dtype)))
    return put_row(*numbers, out, pointer, wrong);
  bool good = true;
  json.each([&](size_t i, const Json& item) {
    good = put_nested(item, dim + 1, out, entry_pointer(pointer, i), wrong);
    return good;
  });
  return good;
}

// Elements at this depth; -1 where lists end before it.
int64_t count_elements(const Json& json, int64_t depth) {
  if (depth == 0) return 1;
  if (!json.is_array()) return -1;
  if (depth == 1) return static_cast<int64_t>(json.size());
  const auto* lists = json.as<JsonArray>();
  if (lists == nullptr) return json.size() == 0 ? 0 : -1;
  int64_t count = 0;
  for (const Json& list : *lists) {
    const int64_t inner = count_elements(list, depth - 1);
    if (inner < 0) return -1;
    count += inner;
  }
  return count;
}

// Numbers, booleans, strings for special values, [re, im] pairs, nested to the type's shape. Notes the first place that
// does not fit. Allocates only when there are as many elements as the shape has: a shape alone allocates nothing.
std::optional<tensor::DenseValue> read_nested(const Json& json, const tensor::TensorType& type,
                                              tensor::BufferPool& pool, const std::string& pointer,
                                              core::Diagnostics& wrong) {
  std::optional<tensor::DenseValue> out;
  if (count_elements(json, type.rank()) == tensor::element_count(type)) out = tensor::new_dense(type, pool);
  Sink sink(type, out ? out->buffer->data() : nullptr);
  if (!put_nested(json, 0, sink, pointer, wrong)) return std::nullopt;
  sink.flush();
  return out;
}

constexpr int64_t kListText = 3;  // brackets and a comma

int64_t list_count(const tensor::TensorType& type) {
  int64_t lists = 0, of_dim = 1;  // each of them as long as the dimension
  for (const int64_t dim : type.dims) {
    lists = core::checked_add(lists, of_dim);
    of_dim = core::checked_mul(of_dim, dim);
  }
  return lists;
}

// The most characters of an element, with its comma, and the bytes that it is converted to.
int64_t longest_element(DType dtype) {
  constexpr int64_t kFloat = 17, kDouble = 26, kPair = 3;
  const int bits = tensor::row(dtype).bits;
  if (dtype == DType::kBool) return 6;
  if (tensor::is_integer(dtype)) return bits <= 8 ? 5 : bits <= 16 ? 7 : bits <= 32 ? 12 : 23;
  if (tensor::is_complex(dtype)) return 2 * (dtype == DType::kComplex64 ? kFloat : kDouble) + kPair;
  return bits == 64 ? kDouble : kFloat + (bits < 32 ? static_cast<int64_t>(sizeof(float)) : 0);
}

// Writes element i.
using Writer = void (*)(std::string&, const std::byte*);

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <typename T>
void append_number(std::string& out, const std::byte* at) {
  if constexpr (std::is_same_v<T, float>) {
    append_float(out, load<T>(at));
  } else if constexpr (std::is_same_v<T, double>) {
    append_double(out, load<T>(at));
  } else if constexpr (std::is_signed_v<T>) {
    append_integer(out, load<T>(at));
  } else {
    append_unsigned(out, load<T>(at));
  }
}

template <typename Part>
void append_complex(std::string& out, const std::byte* at) {
  out += '[';
  append_number<Part>(out, at);
  out += ',';
  append_number<Part>(out, at + sizeof(Part));
  out += ']';
}

Writer writer_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return [](std::string& out, const std::byte* at) { out += *at != std::byte{0} ? "true" : "false"; };
    case DType::kFloat32:
      return append_number<float>;
    case DType::kFloat64:
      return append_number<double>;
    case DType::kComplex64:
      return append_complex<float>;
    case DType::kComplex128:
      return append_complex<double>;
    default:
      return tensor::with_integer(
          dtype, []<typename T>(T) -> Writer { return append_number<T>; }, []() -> Writer { return nullptr; });
  }
}

// Fast path: a row of finite floats is written directly into the text: the shortest digits that read back, a point in
// each.
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
      // 1 is a float here: written as 1.0, so that a reader keeps it one.
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

// A dynamic dimension has as many elements as the first list of its depth.
tensor::TensorType sized_by(const Json& json, tensor::TensorType type, size_t depth) {
  if (depth == type.dims.size()) return type;
  const auto size = json.is_array() ? static_cast<int64_t>(json.size()) : 0;
  if (type.dims[depth] == tensor::kDynamicDim) type.dims[depth] = size;
  if (size == 0) std::replace(type.dims.begin(), type.dims.end(), tensor::kDynamicDim, int64_t{0});
  json.each([&](size_t, const Json& first) {
    type = sized_by(first, std::move(type), depth + 1);
    return false;
  });
  return type;
}

// A VALUE whose fields were read.
std::optional<tensor::DenseValue> value_of(const ValueInput& in, tensor::BufferPool& pool, const std::string& pointer,
                                           core::Diagnostics& wrong) {
  if ((in.data == nullptr) == (in.base64 == nullptr)) {
    wrong.add(pointer, "expected exactly one of data and base64");
    return std::nullopt;
  }
  if (!in.dtype || !in.shape) return std::nullopt;
  const tensor::TensorType type{*in.dtype, *in.shape};
  if (in.data != nullptr) return read_nested(*in.data, type, pool, pointer + "/data", wrong);
  const int64_t expected = tensor::byte_count(type);
  std::optional<tensor::DenseValue> out;
  std::string got;
  if (const auto* text = in.base64->as<std::string>()) {
    const int64_t bytes = base64_size(*text).value_or(-1);
    if (bytes == expected) out = tensor::new_dense(type, pool);
    if (out && !base64_decode(*text, out->buffer->bytes())) {
      out.reset();
      got = ", got characters that are none of it";
    } else if (!out) {
      got = bytes >= 0 ? fmt::format(", got {} characters for {}", text->size(), bytes)
                       : fmt::format(", got {} characters, no multiple of 4", text->size());
    }
  } else {
    got = fmt::format(", got {}", in.base64->kind_name());
  }
  if (!out) {
    wrong.add(pointer + "/base64", fmt::format("expected base64 of {} bytes{}", expected, got));
    return std::nullopt;
  }
  clean_elements(type.dtype, out->buffer->bytes());
  return out;
}

// Numbers, booleans and lists where the type is known.
std::optional<tensor::DenseValue> read_bare(const Json& json, const tensor::TensorType* expected,
                                            tensor::BufferPool& pool, const std::string& pointer,
                                            core::Diagnostics& wrong) {
  if (expected != nullptr) return read_nested(json, sized_by(json, *expected, 0), pool, pointer, wrong);
  wrong.add(pointer, fmt::format("expected an object with dtype, shape and data, got {}", json.kind_name()));
  return std::nullopt;
}

void append_nested(std::string& out, const tensor::TensorType& type, std::span<const std::byte> bytes);

}  // namespace

void clean_elements(DType dtype, std::span<std::byte> bytes) {
  if (dtype == DType::kBool) {
    for (std::byte& byte : bytes) byte = byte != std::byte{0} ? std::byte{1} : std::byte{0};
    return;
  }
  const int unused = 8 - tensor::row(dtype).bits;
  if (unused <= 0) return;
  const bool is_signed = tensor::is_signed_integer(dtype);
  for (std::byte& byte : bytes) {
    const auto high = static_cast<uint8_t>(static_cast<uint8_t>(byte) << unused);
    byte = static_cast<std::byte>(is_signed ? static_cast<int8_t>(high) >> unused : high >> unused);
  }
}

JsonType JsonCodec<DType>::type() {
  JsonType out{JsonType::Kind::kString};
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) out.words.push_back(row.name);
  return out;
}

bool JsonCodec<DType>::read(const Json& json, const Place& place, DType& out) {
  const auto* name = json.as<std::string>();
  const auto dtype = name == nullptr ? std::nullopt : tensor::dtype_from_name(*name);
  if (dtype) {
    out = *dtype;
    return true;
  }
  place.wrong.add(place.pointer, name == nullptr
                                     ? fmt::format("expected a string, got {}", json.kind_name())
                                     : fmt::format("{} is no dtype{}", quote(*name), tensor::dtype_advice(*name, '"')));
  return false;
}

namespace {

template <typename In>
std::vector<Field<In>> value_fields(bool required) {
  return {{"dtype", &In::dtype, {.required = required}},
          {"shape", &In::shape, {.low = 0, .high = kLargestExact - 1, .required = required}},
          {"data", &In::data},
          {"base64", &In::base64, {.like = json_type<Base64Elements>}}};
}

}  // namespace

template <>
Schema<ValueInput> make_schema() {
  return {"Value", value_fields<ValueInput>(true)};
}

template <>
Schema<FormValueInput> make_schema() {
  std::vector<Field<FormValueInput>> fields = value_fields<FormValueInput>(false);
  fields.emplace_back("part", &FormValueInput::part);
  fields.emplace_back("member", &FormValueInput::member);
  return {"FormValue", fields};
}

template <>
Schema<ArgumentInput> make_schema() {
  std::vector<Field<ArgumentInput>> fields = value_fields<ArgumentInput>(false);
  fields.emplace_back("array", &ArgumentInput::array);
  fields.emplace_back("job", &ArgumentInput::job);
  fields.push_back({"result", &ArgumentInput::result, {.low = 0, .high = INT32_MAX}});
  fields.emplace_back("slice", &ArgumentInput::slice);
  fields.emplace_back("part", &ArgumentInput::part);
  fields.emplace_back("member", &ArgumentInput::member);
  return {"Argument", fields};
}

template <>
Schema<ValueType> make_schema() {
  return {"ValueType",
          {{"dtype", [](const ValueType& value) { return value.type.dtype; }},
           {"shape",
            [](const ValueType& value) -> std::span<const int64_t> { return value.type.dims; },
            {.low = 0, .high = kLargestExact - 1}}}};
}

template <>
Schema<ValueDocument> make_schema() {
  using Doc = ValueDocument;
  return {"Value",
          {{"dtype", [](const Doc& value) { return value.type.dtype; }},
           {"shape",
            [](const Doc& value) -> std::span<const int64_t> { return value.type.dims; },
            {.low = 0, .high = kLargestExact - 1}},
           {"data",
            [](const Doc& value) {
              return value.encoding == ValueEncoding::kJson ? std::optional(NestedElements{value.type, value.bytes})
                                                            : std::nullopt;
            }},
           {"base64", [](const Doc& value) {
              return value.encoding == ValueEncoding::kBase64 ? std::optional(Base64Elements{value.bytes})
                                                              : std::nullopt;
            }}}};
}

int64_t nested_text_bytes(const tensor::TensorType& type) {
  return core::checked_add(core::checked_mul(tensor::element_count(type), longest_element(type.dtype)),
                           core::checked_mul(list_count(type), kListText));
}

std::vector<ValueDocument> value_documents(const std::vector<tensor::DenseValue>& values, ValueEncoding encoding) {
  // What pages of stored values are given memory for.
  constexpr int64_t kTextOfByte = 6, kFewLists = 4096;
  const auto has_many_lists = [](const tensor::TensorType& type) {
    return core::checked_mul(list_count(type), kListText) >
           core::checked_add(core::checked_mul(tensor::byte_count(type), kTextOfByte), kFewLists * kListText);
  };
  std::vector<ValueDocument> out;
  for (const tensor::DenseValue& value : values) {
    const bool as_bytes = encoding == ValueEncoding::kJson && has_many_lists(value.type);
    out.push_back({value.type, value.bytes(), as_bytes ? ValueEncoding::kBase64 : encoding});
  }
  return out;
}

std::optional<tensor::DenseValue> read_value(const Json& json, const tensor::TensorType* expected,
                                             tensor::BufferPool& pool, const std::string& pointer,
                                             core::Diagnostics& wrong) {
  if (json.as<JsonObject>() == nullptr) return read_bare(json, expected, pool, pointer, wrong);
  const size_t before = wrong.list().size();
  const auto in = read_json<ValueInput>(json, pointer, wrong);
  if (wrong.list().size() != before) return std::nullopt;
  auto out = value_of(in, pool, pointer, wrong);
  if (wrong.list().size() != before) out.reset();
  return out;
}

std::optional<tensor::DenseValue> read_elements(const Json& data, const tensor::TensorType& type,
                                                tensor::BufferPool& pool, const std::string& pointer,
                                                core::Diagnostics& wrong) {
  const auto* items = data.as<JsonArray>();
  const bool is_flat = data.is_array() && (items == nullptr || items->empty() || !items->front().is_array());
  if (!is_flat) return read_nested(data, type, pool, pointer, wrong);
  auto out = read_nested(data, {type.dtype, {tensor::element_count(type)}}, pool, pointer, wrong);
  if (out) out->type = type;
  return out;
}

Argument read_argument(const Json& json, const tensor::TensorType* expected, tensor::BufferPool& pool,
                       const std::string& pointer, core::Diagnostics& wrong) {
  Argument out;
  if (json.as<JsonObject>() == nullptr) {
    out.value = read_bare(json, expected, pool, pointer, wrong);
    return out;
  }
  const size_t before = wrong.list().size();
  auto in = read_json<ArgumentInput>(json, pointer, wrong);
  if (wrong.list().size() != before) return {};
  const auto has = [&](std::string_view name) { return json.find(name) != nullptr; };
  const std::string_view stored = has("array") ? "array" : has("job") ? "job" : "";
  const bool is_stored = !stored.empty(), is_part = !is_stored && has("part");
  const auto refuse = [&](std::string_view name, const std::string& why) {
    if (has(name)) wrong.add(fmt::format("{}/{}", pointer, name), why);
  };
  // Raw bytes of a part may say what they are, and a file that leaves its dtype open.
  const bool needs_type = is_part ? has("shape") : !is_stored;
  for (const std::string_view name : {"dtype", "shape"}) {
    if (is_stored) refuse(name, fmt::format("is not a field that goes with {}", stored));
    if (needs_type && !has(name)) wrong.add(fmt::format("{}/{}", pointer, name), "is missing");
  }
  for (const std::string_view name : {"data", "base64"}) {
    if (is_stored || is_part) refuse(name, fmt::format("is not a field that goes with {}", is_part ? "part" : stored));
  }
  if (is_stored) refuse("part", fmt::format("is not a field that goes with {}", stored));
  if (!is_stored) refuse("slice", "is not a field of a value: it is beside array only");
  if (stored == "array") refuse("job", "is not a field that goes with array");
  if (stored != "job") refuse("result", "is beside job only");
  if (stored == "job" && !has("result")) wrong.add(pointer + "/result", "is missing");
  if (!is_part) refuse("member", "is beside part only");
  if (!is_stored && !is_part) out.value = value_of(in, pool, pointer, wrong);
  if (wrong.list().size() != before) return {};
  out.array = std::move(in.array);
  if (in.job) out.of_job = {std::move(*in.job), *in.result};
  out.slice = std::move(in.slice);
  if (in.part) {
    out.part.emplace(PartRef{std::move(*in.part), in.member.value_or(""), std::nullopt, in.dtype});
    if (in.dtype && in.shape) out.part->raw_type = tensor::TensorType{*in.dtype, *in.shape};
  }
  return out;
}

void JsonCodec<NestedElements>::append(std::string& out, const NestedElements& elements) {
  append_nested(out, elements.type, elements.bytes);
}

void JsonCodec<Base64Elements>::append(std::string& out, const Base64Elements& elements) {
  out += '"';
  append_base64(out, elements.bytes);
  out += '"';
}

namespace {

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
                      fmt::format("{} is not written as JSON numbers; ask for base64", tensor::name(type.dtype)));
  const std::byte* operand = bytes.data();
  convert(&operand, converted.data(), tensor::element_count(type));
  append_nested(out, wide, converted);
}

}  // namespace

}  // namespace meshd::api
