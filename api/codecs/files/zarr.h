// Zarr, versions 2 and 3, as a view of one array: keys and metadata documents. A chunk is a shard. Sources:
// zarr-developers/zarr-specs docs/v3/core and docs/v2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "service/arrays/array.h"

namespace meshd::api {

/// A key of the Zarr store, below the array's base address.
struct ZarrKey {
  enum class Kind : uint8_t {
    kNone,         ///< nothing that we have: 404, which readers take for "is not there"
    kArray3,       ///< zarr.json
    kArray2,       ///< .zarray
    kAttributes2,  ///< .zattrs
    kChunk,        ///< c/1/0 or 1.0
  };
  Kind kind = Kind::kNone;
  int64_t shard = 0;  ///< of a chunk, in the layout
};

/// Reads a key. Example: shards (2,3), "c/1/2" and "1.2" are shard 5; "c" and "0" that of a rank 0 array. Chunks
/// outside of the array are kNone.
ZarrKey read_zarr_key(std::string_view key, const sharding::Layout& layout);

/// zarr.json. Missing chunks read as `fill_value`, so that is NaN, the least or the largest number, never 0. Throws
/// not_acceptable for dtypes that Zarr has no name for.
std::string zarr3_document(const arrays::Array& array, int64_t version);
/// .zarray and .zattrs.
std::string zarr2_document(const arrays::Array& array);
std::string zarr2_attributes(const arrays::Array& array, int64_t version);

}  // namespace meshd::api
