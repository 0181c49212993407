// Bodies that hold one array, in all the forms that are read.
#include <fmt/core.h>

#include "api/codecs/files/file_kinds.h"
#include "api/codecs/files/form.h"
#include "api/codecs/files/npy.h"
#include "api/codecs/value.h"
#include "api/fields/media_type.h"
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
  std::optional<tensor::DType> wanted = hints.dtype;
  if (!wanted && hints.expected != nullptr) wanted = hints.expected->dtype;
  const NpyHead head = read_npy_head([&](std::span<std::byte> to) { body.read_exactly(to); }, wanted);
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

// Raw bytes are known by dtype and shape in the query, or by their number, whatever they begin with.
bool are_raw(const Hints& hints, const BodyReader& body) {
  if (hints.dtype && hints.shape) return true;
  const auto length = body.content_length();
  if (hints.expected == nullptr || !length) return false;
  return *length == tensor::byte_count({hints.dtype ? *hints.dtype : hints.expected->dtype,
                                        hints.shape ? *hints.shape : hints.expected->dims});
}

ArrayBody open_kind(FileKind kind, const Hints& hints, BodyReader& body) {
  const auto opened = [&](NpyHead head) {
    return ArrayBody{std::move(head.type), head.order, &body, nullptr, nullptr};
  };
  switch (kind) {
    case FileKind::kUnknown:
      return opened(open_raw(hints, body));
    case FileKind::kNpy:
      return opened(open_npy(hints, body));
    case FileKind::kMlirBytecode:
      throw core::Error("unsupported_media_type", "the body is MLIR bytecode: POST it to /v1/programs");
    case FileKind::kZip:
    case FileKind::kSafetensors:
      throw core::Error("unsupported_media_type",
                        fmt::format("the body is {}, which may hold several arrays: POST it to /v1/arrays:import",
                                    file_kind_row(kind).name));
    default:
      throw core::Error("unsupported_media_type",
                        fmt::format("the file is {}; send a .npy file or raw bytes", file_kind_row(kind).name));
  }
}

}  // namespace

std::string_view first_bytes(Request& request) {
  auto peeked = std::dynamic_pointer_cast<PeekedBody>(request.body_reader);
  if (peeked == nullptr) {
    peeked = std::make_shared<PeekedBody>(request.body_reader);
    request.body_reader = peeked;
  }
  return peeked->peek(kMagicBytes);
}

ArrayBody open_array_body(Request& request, tensor::BufferPool& pool, const std::optional<tensor::DType>& dtype,
                          const std::optional<tensor::Dims>& shape, const tensor::TensorType* expected) {
  const Hints hints{dtype, shape, expected};
  const std::string media = media_type_of(request.headers);
  const FileKind named = file_kind_of_media(media);
  if (named == FileKind::kJson) {
    const Json json = body_json(request, BodyPolicy::kInline);
    core::Diagnostics wrong;
    for (const std::string_view name : kUploadParameters) {
      // Whoever replaces data has an array with a name.
      if (expected != nullptr || name == "dtype" || name == "shape" || json.find(name) == nullptr) continue;
      wrong.add("/" + std::string(name), fmt::format("is a parameter of the query here: ?{}=...", name));
    }
    wrong.throw_if_any("invalid_array");
    auto value = read_value(json, expected, pool, "", wrong);
    wrong.throw_if_any("invalid_array");
    return {value->type, ElementOrder::kC, nullptr, nullptr, value->buffer};
  }
  if (named == FileKind::kForm) {
    const std::string original(request.headers.get("Content-Type").value_or(""));
    const std::string form = body_text(request, BodyPolicy::kInline);
    request.memory.grow(static_cast<int64_t>(form.size()));  // its part that is the file, copied
    const FormPart file = file_of_form(original, form);
    auto memory = std::make_shared<MemoryBody>(std::string(file.data));
    const bool is_raw = are_raw(hints, *memory);
    const FileKind kind =
        is_raw ? FileKind::kUnknown
               : resolve_file_kind(file.media_type, file.filename, memory->bytes().substr(0, kMagicBytes));
    ArrayBody out = open_kind(kind, hints, *memory);
    out.held = memory;
    return out;
  }
  if (named == FileKind::kUnknown && !is_open_media(media)) {
    throw core::Error("unsupported_media_type",
                      "'" + media +
                          "' is not read here; add -H 'Content-Type: application/x-npy' for a .npy file, "
                          "-H 'Content-Type: application/octet-stream' with ?dtype= and ?shape= for raw bytes, or send "
                          "a JSON value");
  }
  FileKind kind = named;
  if (named != FileKind::kUnknown || !are_raw(hints, request.body()))
    kind = resolve_file_kind(media, "", first_bytes(request));
  return open_kind(kind, hints, request.body());
}

}  // namespace meshd::api
