#include "api/routes/sessions/values_body.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/codecs/files/file_arrays.h"
#include "api/fields/media_type.h"
#include "api/json/json.h"
#include "service/core/ids.h"
#include "service/tensor/sizes.h"

namespace meshd::api {
namespace {

constexpr std::string_view kBytesMedia = "application/octet-stream";
constexpr std::string_view kTaken =
    "send JSON (-H 'Content-Type: application/json'), a form whose part 'request' is JSON, or a .npy, .npz or "
    "safetensors file (-H 'Content-Type: application/octet-stream')";

tensor::DenseValue raw_value(std::string_view data, const FileHints& hints, Request& request, Services& services) {
  if (hints.expected && hints.expected->size() != 1) {
    throw core::Error(
        "malformed_body",
        fmt::format("the body is no file of arrays, and raw bytes are one value where {} are expected; {}",
                    hints.expected->size(), kTaken));
  }
  const tensor::TensorType* expected = hints.expected ? &hints.expected->front() : nullptr;
  core::Diagnostics wrong;
  if (!hints.dtype && expected == nullptr)
    wrong.add("/dtype", fmt::format("the body is no file of arrays; {}. Raw bytes need dtype and shape", kTaken));
  if (!hints.shape && expected == nullptr) wrong.add("/shape", "raw bytes need ?shape=8,2 (shape= for a scalar)");
  wrong.throw_if_any("invalid_query");
  const tensor::TensorType type{hints.dtype ? *hints.dtype : expected->dtype,
                                hints.shape ? *hints.shape : expected->dims};
  tensor::require_sizes(type);
  const int64_t bytes = tensor::byte_count(type);
  if (bytes != static_cast<int64_t>(data.size())) {
    throw core::Error("malformed_body", fmt::format("the body has {} bytes, tensor<{}> takes {}", data.size(),
                                                    tensor::to_string(type), bytes));
  }
  return raw_array(type, data, services.pool, &request.memory);
}

bool are_raw_bytes(std::string_view media, std::string_view bytes, const FileHints& hints) {
  if (!is_open_media(media)) return false;
  if (hints.dtype && hints.shape) return true;
  return media == kBytesMedia && hints.expected && hints.expected->size() == 1 &&
         tensor::byte_count(hints.expected->front()) == static_cast<int64_t>(bytes.size());
}

void check_parameters(FileKind kind, const FileHints& hints, const std::vector<FileArrays::Entry>& entries) {
  core::Diagnostics wrong;
  const auto check = [&](std::string_view name, bool differs, const std::string& what) {
    if (differs) wrong.add("/" + std::string(name), what);
  };
  if (kind == FileKind::kNpy) {
    const FileArrays::Entry& only = entries.front();
    check("dtype", hints.dtype && !only.is_open && *hints.dtype != only.type.dtype,
          "the file says " + std::string(tensor::name(only.type.dtype)));
    check("shape", hints.shape && *hints.shape != only.type.dims,
          "the file says " + tensor::to_string(std::span<const int64_t>(only.type.dims)));
  } else {
    check("dtype", hints.dtype.has_value(), "is for one array: the members of a .npz file have dtype_for=name=dtype");
    check("shape", hints.shape.has_value(), "the file says it itself");
  }
  for (const auto& [name, dtype] : hints.dtypes) {
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&name = name](const FileArrays::Entry& each) { return each.name == name; });
    if (kind == FileKind::kNpy || entry == entries.end()) {
      wrong.add("/dtype_for", "the file has no " + quote(name));
    } else if (!entry->is_open && entry->type.dtype != dtype) {
      wrong.add("/dtype_for", fmt::format("the file says that {} is {}", quote(name), tensor::name(entry->type.dtype)));
    }
  }
  wrong.throw_if_any("invalid_query");
}

}  // namespace

FileHints file_hints(const Request& request) {
  return {dtype_of_query(request), shape_of_query(request), dtypes_by_name(request), std::nullopt};
}

std::string ValuesBody::fingerprint(const std::string& path) const {
  if (document) return document->fingerprint(path);
  return core::sha256_hex(fmt::format("{}\n{}\n{}", path, static_cast<int>(kind), core::sha256_hex(*file)));
}

Json ValuesBody::json(Request& request) const {
  return Json::parse(document->document, kInlineLimits, &request.memory);
}

ValuesBody read_values_body(Request& request, Services& services, const FileHints& hints) {
  const std::string media = media_type_of(request.headers);
  const FileKind named = file_kind_of_media(media);
  bool is_document = named == FileKind::kJson || named == FileKind::kForm;
  if (!is_document && !is_array_file(named) && !is_open_media(media))
    throw core::Error("unsupported_media_type", fmt::format("'{}' is not read here; {}", media, kTaken));
  if (is_document) require_json_or_form(request.headers);
  std::string bytes = body_text(request, BodyPolicy::kValues);
  ValuesBody out;
  if (!is_document && !are_raw_bytes(media, bytes, hints)) {
    out.kind = resolve_file_kind(media, "", std::string_view(bytes).substr(0, kMagicBytes));
    if (out.kind != FileKind::kUnknown && !is_array_file(out.kind)) {
      throw core::Error("unsupported_media_type",
                        fmt::format("the body is {}; {}", file_kind_row(out.kind).name, kTaken));
    }
    if (out.kind == FileKind::kUnknown && media != kBytesMedia) {
      // What curl says of JSON that nobody named; a page of another site could say so as well.
      require_json(request.headers);
      is_document = true;
    }
  }
  if (is_document) {
    out.document.emplace(document_body(request, services, std::move(bytes)));
  } else {
    out.file = std::make_shared<const std::string>(std::move(bytes));
  }
  return out;
}

std::vector<tensor::DenseValue> values_of_file(const ValuesBody& body, const FileHints& hints, Request& request,
                                               Services& services) {
  if (!is_array_file(body.kind)) return {raw_value(*body.file, hints, request, services)};
  FileArrays file(body.kind, *body.file, services.pool, &request.memory);
  check_parameters(body.kind, hints, file.entries());
  std::vector<tensor::DenseValue> out;
  for (size_t i = 0; i < file.entries().size(); ++i) {
    std::optional<tensor::DType> dtype = hints.dtype;
    if (const auto own = hints.dtypes.find(file.entries()[i].name); own != hints.dtypes.end()) dtype = own->second;
    if (!dtype && hints.expected && i < hints.expected->size()) dtype = (*hints.expected)[i].dtype;
    out.push_back(file.take(i, dtype));
  }
  return out;
}

}  // namespace meshd::api
