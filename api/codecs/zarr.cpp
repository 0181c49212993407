#include "api/codecs/zarr.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "api/codecs/json.h"
#include "api/codecs/mesh_codec.h"

namespace meshd::api {
namespace {

// "1/0" or "1.0" as one number a dimension, written as Zarr writes them.
std::optional<std::vector<int64_t>> read_indices(std::string_view text, char separator) {
  std::vector<int64_t> out;
  for (;;) {
    const size_t end = std::min(text.find(separator), text.size());
    const std::string_view field = text.substr(0, end);
    int64_t value = 0;
    const auto [last, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool is_canonical = error == std::errc{} && last == field.data() + field.size() && value >= 0 &&
                              (field.size() == 1 || field.front() != '0');
    if (!is_canonical) return std::nullopt;
    out.push_back(value);
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

std::optional<int64_t> shard_of(const std::vector<int64_t>& chunk, const sharding::Layout& layout) {
  if (chunk.size() != layout.global_dims.size()) return std::nullopt;
  int64_t shard = 0;
  for (size_t d = 0; d < chunk.size(); ++d) {
    if (layout.shard_dims[d] == 0 || chunk[d] >= core::ceil_div(layout.global_dims[d], layout.shard_dims[d]))
      return std::nullopt;
    shard = shard * layout.part_counts[d] + chunk[d];
  }
  return shard;
}

// Chunks have at least one element a dimension, also where there is none to hold.
std::vector<int64_t> chunk_dims(const sharding::Layout& layout) {
  std::vector<int64_t> out = layout.shard_dims;
  for (int64_t& size : out) size = std::max<int64_t>(size, 1);
  return out;
}

std::string fill_value(tensor::DType dtype) {
  const tensor::DTypeRow& row = tensor::row(dtype);
  switch (row.kind) {
    case tensor::DTypeClass::kBool:
      return "true";
    case tensor::DTypeClass::kSigned:
      return std::to_string(INT64_MIN >> (64 - row.bits));
    case tensor::DTypeClass::kUnsigned:
      return std::to_string(UINT64_MAX >> (64 - row.bits));
    case tensor::DTypeClass::kFloat:
      return "\"NaN\"";
    case tensor::DTypeClass::kComplex:
      return "[\"NaN\",\"NaN\"]";
  }
  throw core::Error("internal", "a dtype of no class");
}

std::string dimension_names(const arrays::Array& array) {
  std::string out = "[";
  for (size_t d = 0; d < array.info().type.dims.size(); ++d)
    out += (d ? ",\"dim_" : "\"dim_") + std::to_string(d) + "\"";
  return out + "]";
}

std::string_view name_or_throw(std::string_view name, const arrays::Array& array) {
  if (name.empty()) {
    throw core::Error("not_acceptable", "Zarr has no name for " + std::string(tensor::name(array.info().type.dtype)) +
                                            "; ask for /v1/arrays/" + array.info().id + "/data");
  }
  return name;
}

}  // namespace

ZarrKey read_zarr_key(std::string_view key, const sharding::Layout& layout) {
  using Kind = ZarrKey::Kind;
  if (key == "zarr.json") return {Kind::kArray3, 0};
  if (key == ".zarray") return {Kind::kArray2, 0};
  if (key == ".zattrs") return {Kind::kAttributes2, 0};
  std::optional<std::vector<int64_t>> chunk;
  if (key == "c" || (key == "0" && layout.global_dims.empty())) {
    chunk.emplace();
  } else if (key.starts_with("c/")) {
    chunk = read_indices(key.substr(2), '/');
  } else {
    chunk = read_indices(key, '.');
  }
  const auto shard = chunk ? shard_of(*chunk, layout) : std::nullopt;
  return shard ? ZarrKey{Kind::kChunk, *shard} : ZarrKey{};
}

std::string zarr2_attributes(const arrays::Array& array, int64_t version) {
  const arrays::ArrayInfo& info = array.info();
  return "{\"_ARRAY_DIMENSIONS\":" + dimension_names(array) + ",\"array\":" + quote(info.id) +
         ",\"name\":" + quote(info.name) + ",\"version\":" + std::to_string(version) +
         ",\"mesh\":" + (info.mesh_id.empty() ? "null" : quote(info.mesh_id)) +
         ",\"sharding\":" + sharding_document(info.sharding, info.type.rank(), false) + "}";
}

std::string zarr3_document(const arrays::Array& array, int64_t version) {
  const tensor::TensorType& type = array.info().type;
  const std::string_view name = name_or_throw(tensor::row(type.dtype).zarr3, array);
  const bool has_order = tensor::size_bytes(type.dtype) > 1;
  return "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" + integer_list(type.dims) +
         ",\"data_type\":" + quote(name) + ",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" +
         integer_list(chunk_dims(array.layout())) +
         "}},\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},\"fill_value\":" +
         fill_value(type.dtype) + ",\"codecs\":[{\"name\":\"bytes\"" +
         (has_order ? ",\"configuration\":{\"endian\":\"little\"}" : "") +
         "}],\"dimension_names\":" + dimension_names(array) + ",\"attributes\":" + zarr2_attributes(array, version) +
         "}";
}

std::string zarr2_document(const arrays::Array& array) {
  const tensor::TensorType& type = array.info().type;
  return "{\"zarr_format\":2,\"shape\":" + integer_list(type.dims) +
         ",\"chunks\":" + integer_list(chunk_dims(array.layout())) +
         ",\"dtype\":" + quote(name_or_throw(tensor::row(type.dtype).npy, array)) +
         ",\"compressor\":null,\"filters\":null,\"order\":\"C\",\"fill_value\":" + fill_value(type.dtype) + "}";
}

}  // namespace meshd::api
