// VALUE of the API: {"dtype", "shape", "data" or "base64"}, and the sugar beside it (numbers, booleans, nested lists
// where the dtype is known). Dense row-major bytes on our side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/schema.h"
#include "service/tensor/dense_value.h"

namespace meshd::api {

/// How a request names an array in a file of its form.
struct PartRef {
  std::string part;
  std::string member;                          ///< of a file of several arrays; empty: of one
  std::optional<tensor::TensorType> raw_type;  ///< the part is raw bytes of this type; nothing: the file says it
  std::optional<tensor::DType> dtype;          ///< where the file leaves it open; held to what the file says
};

template <>
struct JsonCodec<tensor::DType> {
  static JsonType type();
  static void append(std::string& out, tensor::DType dtype) { append_string(out, tensor::name(dtype)); }
  static bool read(const Json& json, const Place& place, tensor::DType& out);
};

/// How a request names an array that a job makes, or has made.
struct JobResultRef {
  std::string job;
  int64_t result = 0;
};

/// A VALUE of a request. In its place a FormValue may be an array in a file of the request's form, and an Argument a
/// stored array, too, by its own name or as a job's result, or a slice of one.
struct ValueInput {
  std::optional<tensor::DType> dtype;
  std::optional<std::vector<int64_t>> shape;
  const Json* data = nullptr;
  const Json* base64 = nullptr;
};
struct FormValueInput : ValueInput {
  std::optional<std::string> part, member;
};
struct ArgumentInput : FormValueInput {
  std::optional<std::string> array, job, slice;
  std::optional<int64_t> result;
};
template <>
Schema<ValueInput> make_schema();
template <>
Schema<FormValueInput> make_schema();
template <>
Schema<ArgumentInput> make_schema();

/// Bytes of elements that do not use all their bits, as programs expect them whatever a client sends: bool is 0 or 1;
/// of 2 and 4 bit integers the low bits count, as in ml_dtypes (0x0f is -1 as int4), and the others repeat the sign.
void clean_elements(tensor::DType dtype, std::span<std::byte> bytes);

/// Reads a VALUE with inline data into memory of the pool. `expected`: the type that sugar takes, and that objects are
/// not held to (the caller compares). Notes every mistake under `pointer`; nothing is returned then.
std::optional<tensor::DenseValue> read_value(const Json& json, const tensor::TensorType* expected,
                                             tensor::BufferPool& pool, const std::string& pointer,
                                             core::Diagnostics& wrong);
/// Elements of a type that is known: nested as its shape, or one flat list of all of them. Notes what does not fit
/// under `pointer`; nothing is returned then.
std::optional<tensor::DenseValue> read_elements(const Json& data, const tensor::TensorType& type,
                                                tensor::BufferPool& pool, const std::string& pointer,
                                                core::Diagnostics& wrong);
/// Reads an Argument: of a stored array the caller takes `array` or `of_job`, and `slice`, of an array in a file
/// `part`, and there is no value. Notes mistakes; none of them is there then.
struct Argument {
  std::optional<tensor::DenseValue> value;
  std::optional<std::string> array, slice;
  std::optional<PartRef> part;
  std::optional<JobResultRef> of_job;
};
Argument read_argument(const Json& json, const tensor::TensorType* expected, tensor::BufferPool& pool,
                       const std::string& pointer, core::Diagnostics& wrong);

/// The type of a value, in responses.
struct ValueType {
  const tensor::TensorType& type;
};
/// How the elements of a value stand in a response.
enum class ValueEncoding : uint8_t {
  kJson,    ///< as nested lists
  kBase64,  ///< their bytes
  kNone,    ///< not: dtype and shape alone
};
/// A VALUE of a response; the bytes are the caller's.
struct ValueDocument {
  const tensor::TensorType& type;
  std::span<const std::byte> bytes;
  ValueEncoding encoding = ValueEncoding::kJson;
};
template <>
Schema<ValueType> make_schema();
template <>
Schema<ValueDocument> make_schema();
/// Values whose lists would take many times their bytes are in base64 where `encoding` is kJson, too.
std::vector<ValueDocument> value_documents(const std::vector<tensor::DenseValue>& values, ValueEncoding encoding);
/// The most that elements of this type take as nested lists, while the text is made. Lists may be many where bytes are
/// few: shape [1000000, 0] has a million of them and no byte.
int64_t nested_text_bytes(const tensor::TensorType& type);

/// Elements as nested lists, or their bytes in base64. `held` owns the bytes where no other owner does.
struct NestedElements {
  const tensor::TensorType& type;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> held = nullptr;
};
struct Base64Elements {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> held = nullptr;
};
template <>
struct JsonCodec<NestedElements> {
  static JsonType type() { return {}; }
  static void append(std::string& out, const NestedElements& elements);
};
template <>
struct JsonCodec<Base64Elements> {
  static JsonType type() { return {JsonType::Kind::kBase64}; }
  static void append(std::string& out, const Base64Elements& elements);
};

}  // namespace meshd::api
