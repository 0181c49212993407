#include "api/codecs/files/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "api/json/schema.h"

namespace meshd::api {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr JsonLimits kHeadLimits{8, 200'000};
constexpr size_t kAlignment = 8;

[[noreturn]] void fail_safetensors(const std::string& what) {
  throw core::Error("malformed_body", "safetensors: " + what);
}

std::optional<tensor::DType> dtype_of(std::string_view word) {
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (!word.empty() && row.safetensors == word) return row.dtype;
  }
  return std::nullopt;
}

std::string known_dtypes() {
  std::string out;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (!row.safetensors.empty()) out += (out.empty() ? "" : ", ") + std::string(row.safetensors);
  }
  return out;
}

void check_metadata(const Json& json, core::Diagnostics& wrong) {
  const JsonObject* object = expect_object(json, "/" + std::string(kMetadata), wrong);
  if (object == nullptr) return;
  for (const auto& [name, value] : *object) {
    if (value.as<std::string>() == nullptr) {
      wrong.add("/" + std::string(kMetadata) + "/" + pointer_token(name),
                "expected a string, got " + std::string(value.kind_name()));
    }
  }
}

// An entry of the head.
struct HeadEntry {
  std::string dtype;
  std::vector<int64_t> shape, data_offsets;
};

}  // namespace

template <>
Schema<HeadEntry> make_schema() {
  return {"SafetensorsEntry",
          {{"dtype", &HeadEntry::dtype}, {"shape", &HeadEntry::shape}, {"data_offsets", &HeadEntry::data_offsets}}};
}

namespace {

// One entry, and its end; nothing (and a note) when it cannot be right.
std::optional<std::pair<NamedTensor, int64_t>> read_entry(const std::string& name, const Json& json,
                                                          core::Diagnostics& wrong) {
  const std::string at = "/" + pointer_token(name);
  const size_t before = wrong.list().size();
  const auto in = read_json<HeadEntry>(json, at, wrong);
  const std::vector<int64_t>&shape = in.shape, &offsets = in.data_offsets;
  if (wrong.list().size() != before) return std::nullopt;
  const auto dtype = dtype_of(in.dtype);
  if (!dtype) {
    throw core::Error("unsupported_dtype",
                      fmt::format("safetensors: tensor {} has dtype {}; known here are {}", quote(name),
                                  quote(in.dtype), known_dtypes()),
                      {{at + "/dtype", "is not known here"}});
  }
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; })) {
    wrong.add(at + "/shape", "sizes are 0 or more");
    return std::nullopt;
  }
  if (offsets.size() != 2 || offsets.front() < 0 || offsets.back() < offsets.front()) {
    wrong.add(at + "/data_offsets", "expected [begin, end] with 0 <= begin <= end");
    return std::nullopt;
  }
  NamedTensor out{name, {*dtype, shape}, offsets.front()};
  int64_t bytes = 0;
  try {
    bytes = tensor::byte_count(out.type);
  } catch (const core::Error& error) {
    wrong.add(at + "/shape", error.detail());
    return std::nullopt;
  }
  const int64_t given = offsets.back() - offsets.front();
  if (given != bytes) {
    wrong.add(at + "/data_offsets", fmt::format("span {} bytes, dtype and shape need {}", given, bytes));
    return std::nullopt;
  }
  return std::pair{std::move(out), offsets.back()};
}

}  // namespace

SafetensorsHead read_safetensors_head(const std::function<void(std::span<std::byte>)>& read_exactly,
                                      core::MemoryReservation* memory) {
  std::array<unsigned char, 8> size{};
  read_exactly(std::as_writable_bytes(std::span(size)));
  uint64_t length = 0;
  for (size_t i = size.size(); i-- > 0;) length = length << 8 | size[i];
  if (length > static_cast<uint64_t>(kLongestSafetensorsHead)) {
    fail_safetensors(fmt::format("the first 8 bytes say that the head has {} bytes, at most {} are read", length,
                                 kLongestSafetensorsHead));
  }
  // Tensors are as many as fit into the text of their entries, of some 50 characters each and twice as large in memory.
  constexpr int64_t kMemoryPerByte = 4;
  if (memory != nullptr) memory->grow(static_cast<int64_t>(length) * kMemoryPerByte);
  std::string text(length, '\0');
  read_exactly(std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) fail_safetensors("the head does not begin with '{'");
  const Json json = Json::parse(text, kHeadLimits, memory);
  const JsonObject* object = json.as<JsonObject>();
  if (object == nullptr) fail_safetensors("the head is no JSON object");

  SafetensorsHead out;
  out.head_bytes = static_cast<int64_t>(size.size() + length);
  core::Diagnostics wrong;
  std::vector<std::pair<NamedTensor, int64_t>> found;
  for (const auto& [name, value] : *object) {
    if (!has_room(wrong)) break;
    if (name == kMetadata) {
      check_metadata(value, wrong);
    } else if (auto entry = read_entry(name, value, wrong)) {
      found.push_back(std::move(*entry));
    }
  }
  wrong.throw_if_any("malformed_body");
  // Tensors without bytes precede those that begin at the same offset.
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.begin, a.second) < std::pair(b.first.begin, b.second);
  });
  for (auto& [entry, end] : found) {
    if (entry.begin != out.data_bytes) {
      wrong.add("/" + pointer_token(entry.name) + "/data_offsets",
                fmt::format("{}{}, expected {}",
                            entry.begin < out.data_bytes ? "overlap with the tensor before: begin at "
                                                         : "leave a hole: begin at ",
                            entry.begin, out.data_bytes));
    }
    out.data_bytes = std::max(out.data_bytes, end);
    out.tensors.push_back(std::move(entry));
  }
  wrong.throw_if_any("malformed_body");
  return out;
}

std::string write_safetensors_head(std::span<const NamedTensor> tensors) {
  std::string json = "{";
  int64_t at = 0;
  for (const NamedTensor& entry : tensors) {
    const std::string_view word = tensor::row(entry.type.dtype).safetensors;
    if (word.empty()) {
      throw core::Error("not_acceptable", "safetensors has no name for " + std::string(tensor::name(entry.type.dtype)) +
                                              "; ask for raw bytes, npy or JSON");
    }
    if (entry.name == kMetadata)
      throw core::Error("not_acceptable", "safetensors keeps the name " + quote(kMetadata) + " for itself");
    const int64_t end = core::checked_add(at, tensor::byte_count(entry.type));
    if (json.size() > 1) json += ',';
    append_string(json, entry.name);
    json += ':';
    append_json(json, HeadEntry{std::string(word), entry.type.dims, {at, end}});
    at = end;
  }
  json += '}';
  while (json.size() % kAlignment != 0) json += ' ';
  std::string out;
  for (size_t i = 0; i < 8; ++i) out += static_cast<char>(static_cast<uint64_t>(json.size()) >> (8 * i) & 0xFF);
  return out + json;
}

}  // namespace meshd::api
