#include "api/codecs/files/zarr.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/codecs/mesh_codec.h"
#include "api/json/json_numbers.h"

namespace meshd::api {
namespace {

// "1/0" or "1.0" as one number a dimension, written as Zarr writes them.
std::optional<std::vector<int64_t>> read_indices(std::string_view text, char separator) {
  std::vector<int64_t> out;
  for (;;) {
    const size_t end = std::min(text.find(separator), text.size());
    const std::string_view field = text.substr(0, end);
    const auto value = whole_number(field);
    if (!value || (field.size() > 1 && field.front() == '0')) return std::nullopt;
    out.push_back(*value);
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

using nlohmann::ordered_json;

ordered_json fill_value(tensor::DType dtype) {
  const tensor::DTypeRow& row = tensor::row(dtype);
  switch (row.kind) {
    case tensor::DTypeClass::kBool:
      return true;
    case tensor::DTypeClass::kSigned:
      return INT64_MIN >> (64 - row.bits);
    case tensor::DTypeClass::kUnsigned:
      return UINT64_MAX >> (64 - row.bits);
    case tensor::DTypeClass::kFloat:
      return "NaN";
    case tensor::DTypeClass::kComplex:
      return {"NaN", "NaN"};
  }
  throw core::Error("internal", "a dtype of no class");
}

std::vector<std::string> dimension_names(const arrays::Array& array) {
  std::vector<std::string> out;
  for (size_t d = 0; d < array.info().type.dims.size(); ++d) out.push_back(fmt::format("dim_{}", d));
  return out;
}

ordered_json attributes(const arrays::Array& array, int64_t version) {
  const arrays::ArrayInfo& info = array.info();
  ordered_json out{{"_ARRAY_DIMENSIONS", dimension_names(array)},
                   {"array", info.id},
                   {"name", info.name},
                   {"version", version},
                   {"mesh", nullptr}};
  if (!info.mesh_id.empty()) out["mesh"] = info.mesh_id;
  out["sharding"] = ordered_json::parse(to_json(sharding_document(info.sharding, info.type.rank())));
  return out;
}

std::string text_of(const ordered_json& document) {
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string_view name_or_throw(std::string_view name, const arrays::Array& array) {
  if (name.empty()) {
    throw core::Error("not_acceptable", fmt::format("Zarr has no name for {}; ask for /v1/arrays/{}/data",
                                                    tensor::name(array.info().type.dtype), array.info().id));
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
  return text_of(attributes(array, version));
}

std::string zarr3_document(const arrays::Array& array, int64_t version) {
  const tensor::TensorType& type = array.info().type;
  ordered_json codec{{"name", "bytes"}};
  if (tensor::size_bytes(type.dtype) > 1) codec["configuration"] = {{"endian", "little"}};
  ordered_json out{{"zarr_format", 3}, {"node_type", "array"}, {"shape", type.dims}};
  out["data_type"] = name_or_throw(tensor::row(type.dtype).zarr3, array);
  out["chunk_grid"] = {{"name", "regular"}, {"configuration", {{"chunk_shape", chunk_dims(array.layout())}}}};
  out["chunk_key_encoding"] = {{"name", "default"}, {"configuration", {{"separator", "/"}}}};
  out["fill_value"] = fill_value(type.dtype);
  out["codecs"] = ordered_json::array({codec});
  out["dimension_names"] = dimension_names(array);
  out["attributes"] = attributes(array, version);
  return text_of(out);
}

std::string zarr2_document(const arrays::Array& array) {
  const tensor::TensorType& type = array.info().type;
  ordered_json out{{"zarr_format", 2}, {"shape", type.dims}, {"chunks", chunk_dims(array.layout())}};
  const bool is_named = !tensor::is_void_in_numpy(type.dtype);
  out["dtype"] = name_or_throw(is_named ? tensor::row(type.dtype).npy : std::string_view(), array);
  out["compressor"] = nullptr;
  out["filters"] = nullptr;
  out["order"] = "C";
  out["fill_value"] = fill_value(type.dtype);
  return text_of(out);
}

}  // namespace meshd::api
