// Metadata documents of Zarr, versions 2 and 3, as readers get them: arrays whose chunks are their shards, and groups
// with what is below them. Sources: zarr-developers/zarr-specs docs/v3/core and docs/v2; consolidated metadata as
// zarr-python writes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "service/arrays/array.h"
#include "service/zarr/node_store.h"

namespace meshd::api {

/// zarr.json of an array. Missing chunks read as `fill_value`, so that is NaN, the least or the largest number, never
/// 0. Throws not_acceptable for dtypes that Zarr has no name for.
std::string zarr3_document(arrays::Array& array, int64_t version);
/// .zarray and .zattrs.
std::string zarr2_document(arrays::Array& array);
std::string zarr2_attributes(arrays::Array& array, int64_t version);

enum class ZarrListing : uint8_t {
  kConsolidated,  ///< with the documents of everything below
  kNone,
};

/// zarr.json of a group at `path`. Arrays that Zarr has no dtype or no path for are named in its attributes.
std::string zarr3_group(const zarr::Group& group, const std::string& path, ZarrListing listing);
/// .zgroup, .zattrs and .zmetadata; the last is empty where the group has too many arrays to list.
std::string zarr2_group();
std::string zarr2_group_attributes(const zarr::Group& group, const std::string& path);
std::string zarr2_consolidated(const zarr::Group& group, const std::string& path);

}  // namespace meshd::api
