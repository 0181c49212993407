#include "api/codecs/files/form_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace meshd::api {

FormFiles::FormFiles(std::vector<FormPart> parts, tensor::BufferPool& pool, core::MemoryReservation* memory)
    : parts_(std::move(parts)), pool_(pool), memory_(memory) {}

const FileArrays& FormFiles::arrays_of(const FormPart& part, FileKind kind) {
  const auto known = files_.find(part.name);
  if (known != files_.end()) return known->second;
  return files_.emplace(part.name, FileArrays(kind, part.data, pool_, memory_)).first->second;
}

std::optional<tensor::DenseValue> FormFiles::read_file(const PartRef& wanted, const FileArrays& file,
                                                       const tensor::TensorType* expected, const std::string& pointer,
                                                       core::Diagnostics& wrong) {
  const size_t count = file.entries().size();
  const std::optional<size_t> entry = !wanted.member.empty() ? file.find(wanted.member)
                                      : count == 1           ? std::optional<size_t>(0)
                                                             : std::nullopt;
  if (!entry) {
    wrong.add(pointer + "/member", wanted.member.empty()
                                       ? fmt::format("is missing: the file has {} arrays", count)
                                       : fmt::format("the file has no array named '{}'", wanted.member));
    return std::nullopt;
  }
  std::optional<tensor::DType> dtype = wanted.dtype;
  if (!dtype && expected != nullptr) dtype = expected->dtype;
  auto out = file.read(*entry, dtype);
  if (!wanted.dtype || out.type.dtype == *wanted.dtype) return out;
  wrong.add(pointer + "/dtype", fmt::format("the file says {}", tensor::name(out.type.dtype)));
  return std::nullopt;
}

std::optional<tensor::DenseValue> FormFiles::read_raw(const PartRef& wanted, std::string_view data,
                                                      const tensor::TensorType* expected, const std::string& pointer,
                                                      core::Diagnostics& wrong) {
  if (wanted.dtype && !wanted.raw_type) {
    wrong.add(pointer + "/shape", "is missing: the part is raw bytes");
    return std::nullopt;
  }
  const tensor::TensorType* type = wanted.raw_type ? &*wanted.raw_type : expected;
  const bool is_known =
      type != nullptr && std::find(type->dims.begin(), type->dims.end(), tensor::kDynamicDim) == type->dims.end();
  if (is_known && tensor::byte_count(*type) == static_cast<int64_t>(data.size()))
    return raw_array(*type, data, pool_, memory_);
  const FileKind what = wanted.raw_type ? file_kind_of(data.substr(0, kMagicBytes)) : FileKind::kUnknown;
  const std::string is_file = what == FileKind::kUnknown
                                  ? std::string()
                                  : fmt::format(", and is {}: leave shape away", file_kind_row(what).name);
  wrong.add(pointer + "/part", is_known
                                   ? fmt::format("has {} bytes, tensor<{}> takes {}{}", data.size(),
                                                 tensor::to_string(*type), tensor::byte_count(*type), is_file)
                                   : std::string("is raw bytes: give dtype and shape beside it, or send a .npy file"));
  return std::nullopt;
}

std::optional<tensor::DenseValue> FormFiles::read(const PartRef& wanted, const tensor::TensorType* expected,
                                                  const std::string& pointer, core::Diagnostics& wrong) {
  const auto found =
      std::find_if(parts_.begin(), parts_.end(), [&](const FormPart& each) { return each.name == wanted.part; });
  if (found == parts_.end()) {
    wrong.add(pointer + "/part", fmt::format("the form has no part named '{}'", wanted.part));
    return std::nullopt;
  }
  FileKind kind = FileKind::kUnknown;
  try {
    if (!wanted.raw_type)
      kind = resolve_file_kind(found->media_type, found->filename, found->data.substr(0, kMagicBytes));
    if ((!is_array_file(kind) || kind == FileKind::kNpy) && !wanted.member.empty()) {
      wrong.add(pointer + "/member", "the part is one array; members are of .npz and safetensors files");
      return std::nullopt;
    }
    if (is_array_file(kind)) return read_file(wanted, arrays_of(*found, kind), expected, pointer, wrong);
    return read_raw(wanted, found->data, expected, pointer, wrong);
  } catch (const core::Error& error) {
    constexpr std::array<core::ErrorCode, 5> kFaultsOfFiles = {"malformed_body", "malformed_json", "unsupported_dtype",
                                                               "unsupported_format", "invalid_array"};
    if (std::find(kFaultsOfFiles.begin(), kFaultsOfFiles.end(), error.code()) == kFaultsOfFiles.end()) throw;
    wrong.add(pointer + "/part", error.detail());
    return std::nullopt;
  }
}

std::optional<tensor::DenseValue> read_part(const PartRef& wanted, const tensor::TensorType* expected, FormFiles* files,
                                            const std::string& pointer, core::Diagnostics& wrong) {
  if (files != nullptr) return files->read(wanted, expected, pointer, wrong);
  wrong.add(pointer + "/part", fmt::format("the request is no form: send multipart/form-data with this document as the "
                                           "part 'request' and a file as the part '{}'",
                                           wanted.part));
  return std::nullopt;
}

std::optional<tensor::DenseValue> read_form_value(const Json& json, const tensor::TensorType* expected,
                                                  FormFiles* files, tensor::BufferPool& pool,
                                                  const std::string& pointer, core::Diagnostics& wrong) {
  if (json.as<JsonObject>() == nullptr || json.find("part") == nullptr)
    return read_value(json, expected, pool, pointer, wrong);
  const size_t before = wrong.list().size();
  static_cast<void>(read_json<FormValueInput>(json, pointer, wrong));
  if (wrong.list().size() != before) return std::nullopt;
  const Argument read = read_argument(json, expected, pool, pointer, wrong);
  return read.part ? read_part(*read.part, expected, files, pointer, wrong) : std::nullopt;
}

}  // namespace meshd::api
