#include "api/codecs/files/zarr_keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/json/json_numbers.h"

namespace meshd::api {
namespace {

using Kind = ZarrKey::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 4> kKeys2 = {{{".zarray", Kind::kArray2},
                                                                      {".zgroup", Kind::kGroup2},
                                                                      {".zattrs", Kind::kAttributes2},
                                                                      {".zmetadata", Kind::kConsolidated2}}};
constexpr std::string_view kKey3 = "zarr.json";

// A number as Zarr writes it.
std::optional<int64_t> read_index(std::string_view text) {
  return text.size() > 1 && text.front() == '0' ? std::nullopt : whole_number(text);
}

// "1.0" as one number a dimension.
std::optional<std::vector<int64_t>> read_indices(std::string_view text) {
  std::vector<int64_t> out;
  for (;;) {
    const size_t end = std::min(text.find('.'), text.size());
    const auto value = read_index(text.substr(0, end));
    if (!value) return std::nullopt;
    out.push_back(*value);
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

// Takes the last segment off; nothing where there is none.
std::optional<std::string_view> take_last(std::string_view& path) {
  if (path.empty()) return std::nullopt;
  const size_t slash = path.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  return last;
}

// "a/c/1/0".
std::optional<ZarrKey> read_chunk3(std::string_view path) {
  ZarrKey out{Kind::kChunk, 3, {}, {}};
  for (auto last = take_last(path); last; last = take_last(path)) {
    if (*last == "c") {
      out.node = path;
      std::reverse(out.index.begin(), out.index.end());
      return out;
    }
    const auto value = read_index(*last);
    if (!value) return std::nullopt;
    out.index.push_back(*value);
  }
  return std::nullopt;
}

}  // namespace

ZarrKey read_zarr_key(std::string_view path, ZarrFormats formats) {
  std::string_view node = path;
  const std::string_view last = take_last(node).value_or("");
  if (formats != ZarrFormats::k2) {
    if (last == kKey3) return {Kind::kNode3, 3, std::string(node), {}};
    if (auto chunk = read_chunk3(path)) return std::move(*chunk);
  }
  if (formats != ZarrFormats::k3) {
    for (const auto& [key, kind] : kKeys2) {
      if (last == key) return {kind, 2, std::string(node), {}};
    }
    if (auto index = read_indices(last)) return {Kind::kChunk, 2, std::string(node), std::move(*index)};
  }
  return {};
}

std::optional<std::vector<int64_t>> chunk_index(const ZarrKey& key, size_t rank) {
  if (rank == 0 && key.format == 2) {
    return key.index == std::vector<int64_t>{0} ? std::optional(std::vector<int64_t>()) : std::nullopt;
  }
  return key.index.size() == rank ? std::optional(key.index) : std::nullopt;
}

std::optional<int64_t> shard_at(const ZarrKey& key, const sharding::Layout& layout) {
  const auto index = chunk_index(key, layout.global_dims.size());
  if (!index) return std::nullopt;
  int64_t shard = 0;
  for (size_t d = 0; d < index->size(); ++d) {
    const int64_t size = layout.shard_dims[d];
    if (size == 0 || (*index)[d] >= core::ceil_div(layout.global_dims[d], size)) return std::nullopt;
    shard = shard * layout.part_counts[d] + (*index)[d];
  }
  return shard;
}

bool is_zarr_path(std::string_view name) {
  for (;;) {
    const size_t end = std::min(name.find('/'), name.size());
    const std::string_view segment = name.substr(0, end);
    const bool is_key = segment == kKey3 || std::any_of(kKeys2.begin(), kKeys2.end(),
                                                        [&](const auto& key) { return key.first == segment; });
    if (segment.empty() || segment == "." || segment == ".." || segment.starts_with("__") || is_key) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

}  // namespace meshd::api
