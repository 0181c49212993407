#include "api/codecs/files/form_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "api/codecs/files/file_kinds.h"
#include "api/codecs/files/npy.h"
#include "api/codecs/files/npz.h"
#include "api/codecs/files/safetensors.h"
#include "service/tensor/sizes.h"

namespace meshd::api {
namespace {

// Reads a part from its beginning.
class Cursor {
 public:
  explicit Cursor(std::string_view data) : left_(data) {}
  void read_exactly(std::span<std::byte> to) {
    if (read_some(to) != to.size()) throw core::Error("malformed_body", "the file ends before its array does");
  }
  size_t read_some(std::span<std::byte> to) {
    const size_t count = std::min(to.size(), left_.size());
    std::copy_n(left_.data(), count, reinterpret_cast<char*>(to.data()));
    left_.remove_prefix(count);
    return count;
  }
  [[nodiscard]] std::string_view left() const { return left_; }

 private:
  std::string_view left_;
};

}  // namespace

FormFiles::FormFiles(std::vector<FormPart> parts, tensor::BufferPool& pool, core::MemoryReservation* memory)
    : parts_(std::move(parts)), pool_(pool), memory_(memory) {}

void FormFiles::hold(const tensor::TensorType& type) {
  tensor::require_sizes(type);
  if (memory_ != nullptr) memory_->grow(tensor::byte_count(type));
}

tensor::DenseValue FormFiles::new_value(const tensor::TensorType& type) {
  hold(type);
  return tensor::new_dense(type, pool_);
}

tensor::DenseValue FormFiles::copy_of(const tensor::TensorType& type, std::string_view bytes) {
  hold(type);
  tensor::DenseValue out = tensor::dense_copy(type, std::as_bytes(std::span(bytes)), pool_);
  clean_elements(type.dtype, out.buffer->bytes());
  return out;
}

tensor::DenseValue FormFiles::read_npy(std::string_view data, std::optional<tensor::DType> wanted) {
  Cursor file(data);
  const NpyHead head = read_npy_head([&](std::span<std::byte> to) { file.read_exactly(to); }, wanted);
  const auto expected = static_cast<size_t>(tensor::byte_count(head.type));
  if (file.left().size() != expected) {
    throw core::Error("malformed_body", fmt::format("the head of the .npy file says {} bytes, behind it are {}",
                                                    expected, file.left().size()));
  }
  tensor::DenseValue out = new_value(head.type);
  read_elements(head, out.buffer->bytes(), [&](std::span<std::byte> to) { file.read_exactly(to); });
  return out;
}

std::vector<FormFiles::Member> FormFiles::read_zip(std::string_view data, std::optional<tensor::DType> wanted) {
  Cursor file(data);
  std::vector<Member> out;
  const auto take = [&](const std::string& name, const NpyHead& head, const ReadMember& read) {
    const tensor::DenseValue value = new_value(head.type);
    read_elements(head, value.buffer->bytes(), read);
    out.push_back({name, value});
  };
  walk_npz([&](std::span<std::byte> to) { return file.read_some(to); }, take,
           [&](const std::string&) { return wanted; });
  return out;
}

std::vector<FormFiles::Member> FormFiles::read_safetensors(std::string_view data) {
  Cursor file(data);
  const SafetensorsHead head = read_safetensors_head([&](std::span<std::byte> to) { file.read_exactly(to); });
  if (file.left().size() != static_cast<size_t>(head.data_bytes)) {
    throw core::Error("malformed_body", fmt::format("the head of the safetensors file says {} bytes, behind it are {}",
                                                    head.data_bytes, file.left().size()));
  }
  std::vector<Member> out;
  for (const NamedTensor& tensor : head.tensors) {
    const auto bytes = static_cast<size_t>(tensor::byte_count(tensor.type));
    out.push_back({tensor.name, copy_of(tensor.type, file.left().substr(static_cast<size_t>(tensor.begin), bytes))});
  }
  return out;
}

const std::vector<FormFiles::Member>& FormFiles::members_of(const FormPart& part, bool is_zip,
                                                            std::optional<tensor::DType> wanted) {
  // What the program expects says what members are whose heads leave it open.
  const bool matters = is_zip && wanted && tensor::is_void_in_numpy(*wanted);
  const auto key = std::pair(part.name, matters ? std::string(tensor::name(*wanted)) : std::string());
  const auto known = members_.find(key);
  if (known != members_.end()) return known->second;
  return members_.emplace(key, is_zip ? read_zip(part.data, wanted) : read_safetensors(part.data)).first->second;
}

std::optional<tensor::DenseValue> FormFiles::read(const PartRef& wanted, const tensor::TensorType* expected,
                                                  const std::string& pointer, core::Diagnostics& wrong) {
  const auto found =
      std::find_if(parts_.begin(), parts_.end(), [&](const FormPart& each) { return each.name == wanted.part; });
  if (found == parts_.end()) {
    wrong.add(pointer + "/part", fmt::format("the form has no part named '{}'", wanted.part));
    return std::nullopt;
  }
  const std::optional<tensor::DType> dtype = expected == nullptr ? std::nullopt : std::optional(expected->dtype);
  FileKind kind = FileKind::kUnknown;
  try {
    if (!wanted.raw_type)
      kind = resolve_file_kind(found->media_type, found->filename, found->data.substr(0, kMagicBytes));
    if (kind == FileKind::kZip || kind == FileKind::kSafetensors) {
      const std::vector<Member>& members = members_of(*found, kind == FileKind::kZip, dtype);
      const auto member = std::find_if(members.begin(), members.end(), [&](const Member& each) {
        return wanted.member.empty() ? members.size() == 1 : each.name == wanted.member;
      });
      if (member == members.end()) {
        wrong.add(pointer + "/member", wanted.member.empty()
                                           ? fmt::format("is missing: the file has {} arrays", members.size())
                                           : fmt::format("the file has no array named '{}'", wanted.member));
        return std::nullopt;
      }
      hold(member->value.type);
      return tensor::dense_copy(member->value.type, member->value.bytes(), pool_);
    }
    if (!wanted.member.empty()) {
      wrong.add(pointer + "/member", "the part is one array; members are of .npz and safetensors files");
      return std::nullopt;
    }
    if (kind == FileKind::kNpy) return read_npy(found->data, dtype);
  } catch (const core::Error& error) {
    constexpr std::array<core::ErrorCode, 5> kFaultsOfFiles = {"malformed_body", "malformed_json", "unsupported_dtype",
                                                               "unsupported_format", "invalid_array"};
    if (std::find(kFaultsOfFiles.begin(), kFaultsOfFiles.end(), error.code()) == kFaultsOfFiles.end()) throw;
    wrong.add(pointer + "/part", error.detail());
    return std::nullopt;
  }
  const tensor::TensorType* type = wanted.raw_type ? &*wanted.raw_type : expected;
  const bool is_known =
      type != nullptr && std::find(type->dims.begin(), type->dims.end(), tensor::kDynamicDim) == type->dims.end();
  if (!is_known || tensor::byte_count(*type) != static_cast<int64_t>(found->data.size())) {
    const FileKind what = wanted.raw_type ? file_kind_of(found->data.substr(0, kMagicBytes)) : FileKind::kUnknown;
    const std::string is_file = what == FileKind::kUnknown
                                    ? std::string()
                                    : fmt::format(", and is {}: leave dtype and shape away", file_kind_row(what).name);
    wrong.add(pointer + "/part",
              is_known ? fmt::format("has {} bytes, tensor<{}> takes {}{}", found->data.size(),
                                     tensor::to_string(*type), tensor::byte_count(*type), is_file)
                       : std::string("is raw bytes: give dtype and shape beside it, or send a .npy file"));
    return std::nullopt;
  }
  return copy_of(*type, found->data);
}

std::optional<tensor::DenseValue> read_part(const PartRef& wanted, const tensor::TensorType* expected, FormFiles* files,
                                            const std::string& pointer, core::Diagnostics& wrong) {
  if (files != nullptr) return files->read(wanted, expected, pointer, wrong);
  wrong.add(pointer + "/part", fmt::format("the request is no form: send multipart/form-data with this document as the "
                                           "part 'request' and a file as the part '{}'",
                                           wanted.part));
  return std::nullopt;
}

}  // namespace meshd::api
