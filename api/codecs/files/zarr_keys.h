// Keys of Zarr stores, versions 2 and 3: the path of a node, and which of its documents or chunks. Pure functions.
// Sources: zarr-developers/zarr-specs docs/v3/core (chunk key encoding "default") and docs/v2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/sharding/layout.h"

namespace meshd::api {

/// The versions of Zarr that an address has.
enum class ZarrFormats : uint8_t { k2, k3, kBoth };

struct ZarrKey {
  enum class Kind : uint8_t {
    kNone,           ///< nothing that we have: 404, which readers take for "is not there"
    kNode3,          ///< zarr.json, of an array or a group
    kArray2,         ///< .zarray
    kGroup2,         ///< .zgroup
    kAttributes2,    ///< .zattrs
    kConsolidated2,  ///< .zmetadata
    kChunk,          ///< c/1/0 or 1.0
  };
  Kind kind = Kind::kNone;
  int format = 3;
  std::string node;            ///< path of the node, without a slash at its end; empty: the root
  std::vector<int64_t> index;  ///< of a chunk
};

/// Reads a path. Examples: "a/b/zarr.json" is the document of a/b; "a/c/1/0" chunk (1, 0) of a in version 3, "a/1.0"
/// the same in version 2; "a/c" and "a/0" that of a rank 0 array.
ZarrKey read_zarr_key(std::string_view path, ZarrFormats formats);
/// The index of a chunk for an array of this rank: version 2 writes that of rank 0 as 0. Nothing where it has another
/// rank.
std::optional<std::vector<int64_t>> chunk_index(const ZarrKey& key, size_t rank);
/// The shard that is this chunk; nothing outside of the array. Example: shards (2, 3), index (1, 2): 5.
std::optional<int64_t> shard_at(const ZarrKey& key, const sharding::Layout& layout);
/// Whether readers find a node of this name: its segments are not empty, nor ".", "..", nor what Zarr keeps to itself.
bool is_zarr_path(std::string_view name);

}  // namespace meshd::api
