#include "api/codecs/files/zarr_metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/codecs/value.h"
#include "api/json/json.h"
#include "service/core/error.h"
#include "service/tensor/sizes.h"

namespace meshd::api {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kCodecs = "bytes as they are, gzip, zstd and blosc";

[[noreturn]] void unsupported(const std::string& what) { throw core::Error("unsupported_format", what); }

// A document, read twice: `checked` refuses what is no I-JSON, and has numbers as they were written.
class Document {
 public:
  Document(const std::string& text, core::MemoryReservation* memory) : checked_(parse(text, memory)) {
    if (checked_.as<JsonObject>() == nullptr)
      throw core::Error("invalid_request", fmt::format("expected an object, got {}", checked_.kind_name()));
    json_ = ordered_json::parse(text);
  }

  [[nodiscard]] const ordered_json& json() const { return json_; }
  [[nodiscard]] const Json* number_of(std::string_view name) const { return checked_.find(name); }
  [[nodiscard]] bool has(const char* name) const { return json_.contains(name); }
  core::Diagnostics& wrong() { return wrong_; }
  void throw_if_any() const { wrong_.throw_if_any("invalid_request"); }

  // The field; null and a note where there is none.
  const ordered_json* need(const char* name) {
    const auto found = json_.find(name);
    if (found != json_.end()) return &*found;
    wrong_.add(std::string("/") + name, "is missing");
    return nullptr;
  }
  void need_value(const char* name, const ordered_json& expected) {
    const ordered_json* found = need(name);
    if (found != nullptr && *found != expected)
      wrong_.add(std::string("/") + name, fmt::format("expected {}, got {}", expected.dump(), short_text(*found)));
  }
  // Sizes of dimensions.
  tensor::Dims sizes(const ordered_json* list, const std::string& pointer, int64_t least) {
    tensor::Dims out;
    if (list == nullptr) return out;
    bool is_right = list->is_array();
    for (size_t i = 0; is_right && i < list->size(); ++i) {
      const ordered_json& size = (*list)[i];
      is_right = size.is_number_integer() && !(size.is_number_unsigned() && size.get<uint64_t>() > INT64_MAX) &&
                 size.get<int64_t>() >= least;
      if (is_right) out.push_back(size.get<int64_t>());
    }
    if (!is_right) wrong_.add(pointer, fmt::format("expected a list of whole numbers, each at least {}", least));
    return out;
  }
  static std::string short_text(const ordered_json& value) {
    constexpr size_t kMost = 60;
    std::string text = value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
    if (text.size() > kMost) text = text.substr(0, kMost) + "...";
    return text;
  }

 private:
  // Holds memory for both, and for a copy of the second.
  static Json parse(const std::string& text, core::MemoryReservation* memory) {
    constexpr int64_t kOthers = 2;
    const int64_t before = memory != nullptr ? memory->bytes() : 0;
    if (memory != nullptr) memory->grow(static_cast<int64_t>(text.size()));
    Json out = Json::parse(text, kInlineLimits, memory);
    if (memory != nullptr) memory->grow(kOthers * (memory->bytes() - before));
    return out;
  }

  Json checked_;
  ordered_json json_;
  core::Diagnostics wrong_;
};

std::string word_of(const ordered_json& json, const char* field) {
  const auto found = json.is_object() ? json.find(field) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t integer_of(const ordered_json& json, const char* field, int64_t missing) {
  const auto found = json.is_object() ? json.find(field) : json.end();
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : missing;
}

const ordered_json& configuration_of(const ordered_json& codec) {
  static const ordered_json kNone = ordered_json::object();
  const auto found = codec.is_object() ? codec.find("configuration") : codec.end();
  return found == codec.end() ? kNone : *found;
}

tensor::DType dtype_field(const ordered_json& given, const char* field, std::string_view tensor::DTypeRow::*column) {
  const std::string word = given.is_string() ? given.get<std::string>() : std::string();
  std::string known;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    const std::string_view name = tensor::is_void_in_numpy(row.dtype) ? std::string_view() : row.*column;
    if (name.empty()) continue;
    if (name == word) return row.dtype;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw core::Error("unsupported_dtype", fmt::format("{}: {} is no type that arrays are written in: {}", field,
                                                     Document::short_text(given), known));
}

// The bits of a float as Zarr 3 may write them: "0x7fc00000".
bool read_hex(const std::string& text, tensor::DType dtype, std::vector<std::byte>& out) {
  uint64_t bits = 0;
  const size_t size = out.size();
  if (!tensor::is_float(dtype) || !text.starts_with("0x") || text.size() != 2 + 2 * size) return false;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  std::memcpy(out.data(), &bits, size);
  return true;
}

// An element of the fill value.
std::vector<std::byte> read_fill(Document& document, tensor::DType dtype, tensor::BufferPool& pool) {
  std::vector<std::byte> out(static_cast<size_t>(tensor::size_bytes(dtype)));
  const Json* given = document.number_of("fill_value");
  const ordered_json* text = document.need("fill_value");
  if (given == nullptr || given->is_null()) return out;  // undefined in version 2: zero
  if (text->is_string() && read_hex(text->get<std::string>(), dtype, out)) return out;
  Json pair;
  if (tensor::is_complex(dtype) && given->as<JsonNumber>() != nullptr) {
    pair.value = JsonArray{*given, Json{JsonNumber{}}};  // a real number
    given = &pair;
  }
  if (given->as<JsonObject>() != nullptr) {
    document.wrong().add("/fill_value", "expected a value, got an object");
    return out;
  }
  const tensor::TensorType element{dtype, {}};
  const auto value = read_value(*given, &element, pool, "/fill_value", document.wrong());
  if (value) std::memcpy(out.data(), value->buffer->data(), out.size());
  return out;
}

// gzip, zstd and Blosc: `name` and the fields of its configuration, in which the two versions nearly agree.
zarr::ChunkEncoding read_codec(const std::string& name, const ordered_json& fields, int64_t element_bytes) {
  zarr::ChunkEncoding out;
  const auto level = [&](const char* field, int64_t missing, int64_t low, int64_t high) {
    out.level = static_cast<int>(std::clamp(integer_of(fields, field, missing), low, high));
  };
  if (name == "gzip") {
    out.codec = zarr::ChunkCodec::kGzip;
    level("level", 5, 0, 9);
  } else if (name == "zstd") {
    out.codec = zarr::ChunkCodec::kZstd;
    level("level", 0, -7, 19);
  } else if (name == "blosc") {
    out.codec = zarr::ChunkCodec::kBlosc;
    level("clevel", 5, 0, 9);
    out.compressor = word_of(fields, "cname");
    if (!zarr::has_blosc_compressor(out.compressor))
      unsupported(fmt::format("Blosc's compressor '{}' is not known here; use lz4, lz4hc, blosclz, zlib or zstd",
                              out.compressor));
    const std::string shuffle = word_of(fields, "shuffle");   // version 3
    const int64_t number = integer_of(fields, "shuffle", 1);  // version 2; -1: bits for bytes, else bytes
    const bool is_bits = shuffle == "bitshuffle" || number == 2 || (number == -1 && element_bytes == 1);
    out.shuffle = is_bits ? 2 : (shuffle == "noshuffle" || number == 0) ? 0 : 1;
    out.element_bytes = element_bytes;
  } else {
    unsupported(fmt::format("the codec '{}' is not written here: {} are", name, kCodecs));
  }
  return out;
}

zarr::ChunkEncoding read_codecs3(const ordered_json& codecs, int64_t element_bytes) {
  zarr::ChunkEncoding out;
  if (!codecs.is_array() || codecs.empty() || word_of(codecs[0], "name") != "bytes") {
    const std::string first = codecs.is_array() && !codecs.empty() ? word_of(codecs[0], "name") : std::string();
    unsupported(fmt::format("codecs: expected 'bytes' first, got '{}'; {} are written", first, kCodecs));
  }
  const std::string endian = word_of(configuration_of(codecs[0]), "endian");
  if (element_bytes > 1 && endian == "big") unsupported("codecs: elements are little endian; got 'big'");
  for (size_t i = 1; i < codecs.size(); ++i) {
    if (i > 1)
      unsupported(fmt::format("codecs: one compressor is written; got '{}' behind it", word_of(codecs[i], "name")));
    out = read_codec(word_of(codecs[i], "name"), configuration_of(codecs[i]), element_bytes);
  }
  return out;
}

bool is_absent(const ordered_json& json, const char* field) {
  const auto found = json.find(field);
  return found == json.end() || found->is_null() || found->empty();
}

ordered_json kept_attributes(ordered_json attributes, ordered_json dimension_names) {
  attributes.erase("meshd");  // ours, of an array that was read
  ordered_json out{{"attributes", std::move(attributes)}};
  if (dimension_names.is_array()) out["dimension_names"] = std::move(dimension_names);
  return out;
}

std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool are_names(const ordered_json& names, const std::optional<size_t>& rank, bool may_be_null) {
  return names.is_array() && (!rank || names.size() == *rank) &&
         std::all_of(names.begin(), names.end(),
                     [&](const ordered_json& name) { return name.is_string() || (may_be_null && name.is_null()); });
}

// Sizes that fit, of the array and of a chunk.
void check_sizes(const ZarrMetadata& metadata, Document& document, const char* chunk_field) {
  const tensor::TensorType& type = *metadata.type;
  const tensor::Dims& chunk = metadata.chunked.chunk_dims;
  if (chunk.size() != type.dims.size()) {
    document.wrong().add(chunk_field,
                         fmt::format("expected {} sizes, as shape has, got {}", type.dims.size(), chunk.size()));
  }
  document.throw_if_any();
  tensor::require_sizes(type);
  tensor::require_sizes({type.dtype, chunk});
  const int64_t bytes = tensor::byte_count({type.dtype, chunk});
  if (bytes > kMostChunkBytes) {
    throw core::Error("invalid_array", fmt::format("a chunk has {} bytes, at most {} are taken: write smaller ones",
                                                   bytes, kMostChunkBytes));
  }
}

// Fields that a reader need not understand may be there.
void check_fields3(Document& document, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : document.json().items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto must = value.is_object() ? value.find("must_understand") : value.end();
    const bool is_ignored = value.is_null() || (must != value.end() && *must == false);
    if (!is_ignored) document.wrong().add("/" + pointer_token(name), "is not known here");
  }
}

ordered_json attributes3(Document& document) {
  if (is_absent(document.json(), "attributes")) return ordered_json::object();
  const ordered_json& given = document.json()["attributes"];
  if (!given.is_object()) document.wrong().add("/attributes", "expected an object");
  return given;
}

ZarrMetadata read_array3(Document& document, tensor::BufferPool& pool) {
  ZarrMetadata out;
  out.kind = zarr::NodeKind::kArray;
  check_fields3(document, {"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
                           "fill_value", "codecs", "attributes", "dimension_names", "storage_transformers"});
  const tensor::Dims dims = document.sizes(document.need("shape"), "/shape", 0);
  const ordered_json* dtype = document.need("data_type");
  const ordered_json* grid = document.need("chunk_grid");
  const ordered_json* keys = document.need("chunk_key_encoding");
  const ordered_json* codecs = document.need("codecs");
  ordered_json attributes = attributes3(document);
  document.throw_if_any();
  out.type = {dtype_field(*dtype, "data_type", &tensor::DTypeRow::zarr3), dims};
  if (word_of(*grid, "name") != "regular")
    unsupported(fmt::format("chunk_grid: '{}' is not written here, 'regular' is", word_of(*grid, "name")));
  const std::string separator = word_of(configuration_of(*keys), "separator");
  if (word_of(*keys, "name") != "default" || !(separator.empty() || separator == "/"))
    unsupported(fmt::format("chunk_key_encoding: '{}' with separator '{}' is not written here, 'default' with '/' is",
                            word_of(*keys, "name"), separator));
  if (!is_absent(document.json(), "storage_transformers")) unsupported("storage_transformers are not known here");
  const int64_t element_bytes = tensor::size_bytes(out.type->dtype);
  out.chunked.encoding = read_codecs3(*codecs, element_bytes);
  const ordered_json& configuration = configuration_of(*grid);
  const auto shape = configuration.is_object() ? configuration.find("chunk_shape") : configuration.end();
  constexpr const char* kShape = "/chunk_grid/configuration/chunk_shape";
  if (shape == configuration.end()) document.wrong().add(kShape, "is missing");
  out.chunked.chunk_dims = document.sizes(shape == configuration.end() ? nullptr : &*shape, kShape, 1);
  ordered_json names;
  if (!is_absent(document.json(), "dimension_names")) {
    names = document.json()["dimension_names"];
    if (!are_names(names, dims.size(), true))
      document.wrong().add("/dimension_names", fmt::format("expected {} strings or nulls, as shape has", dims.size()));
  }
  if (document.has("fill_value") && document.json()["fill_value"].is_null())
    document.wrong().add("/fill_value", "expected a value, got null");
  out.chunked.fill = read_fill(document, out.type->dtype, pool);
  check_sizes(out, document, kShape);
  out.attributes = dumped(kept_attributes(std::move(attributes), std::move(names)));
  return out;
}

}  // namespace

ZarrMetadata read_zarr3(const std::string& text, tensor::BufferPool& pool, core::MemoryReservation* memory) {
  Document document(text, memory);
  document.need_value("zarr_format", 3);
  const ordered_json* type = document.need("node_type");
  if (type != nullptr && *type != "array" && *type != "group")
    document.wrong().add("/node_type", R"(expected "array" or "group")");
  document.throw_if_any();
  if (*type == "array") {
    ZarrMetadata out = read_array3(document, pool);
    out.text = text;
    return out;
  }
  ZarrMetadata out;
  out.kind = zarr::NodeKind::kGroup;
  check_fields3(document, {"zarr_format", "node_type", "attributes", "consolidated_metadata"});
  ordered_json attributes = attributes3(document);
  document.throw_if_any();
  out.attributes = dumped(kept_attributes(std::move(attributes), {}));
  ordered_json plain = document.json();
  plain.erase("consolidated_metadata");
  out.text = dumped(plain);
  return out;
}

ZarrMetadata read_zarr2_array(const std::string& text, tensor::BufferPool& pool, core::MemoryReservation* memory) {
  Document document(text, memory);
  ZarrMetadata out;
  out.kind = zarr::NodeKind::kArray;
  out.text = text;
  document.need_value("zarr_format", 2);
  const tensor::Dims dims = document.sizes(document.need("shape"), "/shape", 0);
  out.chunked.chunk_dims = document.sizes(document.need("chunks"), "/chunks", 1);
  const ordered_json* dtype = document.need("dtype");
  document.throw_if_any();
  out.type = {dtype_field(*dtype, "dtype", &tensor::DTypeRow::npy), dims};
  if (word_of(document.json(), "order") != "C")
    unsupported(fmt::format("order: '{}' is not written here, 'C' is", word_of(document.json(), "order")));
  const std::string separator = word_of(document.json(), "dimension_separator");
  if (!separator.empty() && separator != ".")
    unsupported(fmt::format("dimension_separator: '{}' is not written here, '.' is", separator));
  if (!is_absent(document.json(), "filters")) unsupported("filters: none are known here; write the array without");
  if (!is_absent(document.json(), "compressor")) {
    const ordered_json& compressor = document.json()["compressor"];
    out.chunked.encoding = read_codec(word_of(compressor, "id"), compressor, tensor::size_bytes(out.type->dtype));
  }
  out.chunked.fill = read_fill(document, out.type->dtype, pool);
  check_sizes(out, document, "/chunks");
  return out;
}

ZarrMetadata read_zarr2_group(const std::string& text, core::MemoryReservation* memory) {
  Document document(text, memory);
  document.need_value("zarr_format", 2);
  document.throw_if_any();
  ZarrMetadata out;
  out.kind = zarr::NodeKind::kGroup;
  out.text = text;
  return out;
}

ZarrMetadata read_zarr2_attributes(const std::string& text, core::MemoryReservation* memory) {
  const Document document(text, memory);
  ZarrMetadata out;
  out.text = text;
  ordered_json attributes = document.json(), names;
  const auto found = attributes.find("_ARRAY_DIMENSIONS");
  if (found != attributes.end() && are_names(*found, std::nullopt, false)) {
    names = *found;
    attributes.erase("_ARRAY_DIMENSIONS");
  }
  out.attributes = dumped(kept_attributes(std::move(attributes), std::move(names)));
  return out;
}

}  // namespace meshd::api
