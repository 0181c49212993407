// Bodies that hold one array, in all the forms that are read.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "api/codecs/form.h"
#include "api/codecs/npy.h"
#include "api/codecs/value.h"
#include "api/http/media_type.h"
#include "api/http/router.h"
#include "api/json/json.h"
#include "api/routes/arrays/upload_body.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

struct Hints {
  const std::optional<tensor::DType>& dtype;
  const std::optional<tensor::Dims>& shape;
  const tensor::TensorType* expected;
};

NpyHead open_npy(const Hints& hints, BodyReader& body) {
  const NpyHead head = read_npy_head([&](std::span<std::byte> to) { body.read_exactly(to); });
  if (hints.dtype && *hints.dtype != head.type.dtype)
    throw core::Error("invalid_query", "dtype: the file says " + std::string(tensor::name(head.type.dtype)));
  if (hints.shape && *hints.shape != head.type.dims)
    throw core::Error("invalid_query",
                      "shape: the file says " + tensor::to_string(std::span<const int64_t>(head.type.dims)));
  return head;
}

NpyHead open_raw(const Hints& hints, const BodyReader& body) {
  core::Diagnostics wrong;
  const bool is_known = hints.expected != nullptr;
  if (!hints.dtype && !is_known) wrong.add("/dtype", "raw bytes need ?dtype=float32 or the like");
  if (!hints.shape && !is_known) wrong.add("/shape", "raw bytes need ?shape=8,2 (shape= for a scalar)");
  wrong.throw_if_any("invalid_query");
  const tensor::TensorType type{hints.dtype ? *hints.dtype : hints.expected->dtype,
                                hints.shape ? *hints.shape : hints.expected->dims};
  const int64_t bytes = tensor::byte_count(type);
  const auto length = body.content_length();
  if (length && *length != bytes) {
    throw core::Error("malformed_body", fmt::format("the body has {} bytes, dtype and shape say {}", *length, bytes));
  }
  return {type, ElementOrder::kC};
}

// The part named `file` of a form.
std::string form_file(const std::string& content_type, const std::string& body) {
  for (const FormPart& part : read_form(content_type, body)) {
    if (part.name == "file") return std::string(part.data);
  }
  throw core::Error("malformed_body", "the form has no part named file");
}

ArrayBody opened(NpyHead head, BodyReader* reader) {
  return {std::move(head.type), head.order, reader, nullptr, nullptr};
}

}  // namespace

ArrayBody open_array_body(Request& request, tensor::BufferPool& pool, const std::optional<tensor::DType>& dtype,
                          const std::optional<tensor::Dims>& shape, const tensor::TensorType* expected) {
  const Hints hints{dtype, shape, expected};
  const std::string media = media_type_of(request.headers);
  BodyReader& body = request.body();
  const bool says_type = expected != nullptr || (dtype && shape);
  if (media == "application/x-npy" || media == "application/npy") return opened(open_npy(hints, body), &body);
  if (media == "application/octet-stream" || (media.empty() && dtype)) return opened(open_raw(hints, body), &body);
  if (media == "application/json") {
    const Json json = body_json(request, BodyPolicy::kInline);
    core::Diagnostics wrong;
    auto value = read_value(json, expected, pool, "", wrong);
    wrong.throw_if_any("invalid_array");
    return {value->type, ElementOrder::kC, nullptr, nullptr, value->buffer};
  }
  if (media == "multipart/form-data") {
    const std::string original(request.headers.get("Content-Type").value_or(""));
    const std::string form = body_text(request, BodyPolicy::kInline);
    request.memory.grow(static_cast<int64_t>(form.size()));  // its part that is the file, copied
    auto memory = std::make_shared<MemoryBody>(form_file(original, form));
    ArrayBody out = opened(says_type ? open_raw(hints, *memory) : open_npy(hints, *memory), memory.get());
    out.held = memory;
    return out;
  }
  // curl --data-binary without -H sends it as a form: accepted where the query or the bytes identify the format.
  if (media == "application/x-www-form-urlencoded" || media.empty()) {
    bool is_raw = says_type && !(media.empty() && expected == nullptr);
    if (is_raw && expected != nullptr && !dtype) {
      const auto length = body.content_length();
      is_raw = !length || *length == tensor::byte_count(*expected);
    }
    return opened(is_raw ? open_raw(hints, body) : open_npy(hints, body), &body);
  }
  throw core::Error(
      "unsupported_media_type",
      "'" + media +
          "' is not read here; add -H 'Content-Type: application/x-npy' for a .npy file, "
          "-H 'Content-Type: application/octet-stream' with ?dtype= and ?shape= for raw bytes, or send a JSON value");
}

}  // namespace meshd::api
