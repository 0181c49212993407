// Metadata documents of Zarr, versions 2 and 3, as clients that write send them. Codecs, grids, dtypes and orders that
// arrays are not written in are refused by name. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>

#include "service/core/memory_ledger.h"
#include "service/tensor/buffer.h"
#include "service/tensor/shape.h"
#include "service/zarr/chunked_array.h"
#include "service/zarr/node_store.h"

namespace meshd::api {

/// A chunk is decoded in memory.
inline constexpr int64_t kMostChunkBytes = int64_t{256} << 20;

/// A document that was read. `type` and `chunked` are those of an array.
struct ZarrMetadata {
  zarr::NodeKind kind = zarr::NodeKind::kUnknown;
  std::optional<tensor::TensorType> type;
  zarr::ChunkedType chunked;
  /// JSON that arrays and groups keep: {"attributes": {...}, "dimension_names": ["x", null]}, the second where the
  /// client gave names. Nothing: the document has none (.zarray, .zgroup).
  std::optional<std::string> attributes;
  std::string text;  ///< the document, without consolidated metadata, which follows from what there is
};

/// zarr.json of an array or a group. `memory` grows by what reading takes. Throws malformed_json, invalid_request with
/// every mistake, unsupported_dtype, unsupported_format, invalid_array (sizes), memory_full, body_too_large.
ZarrMetadata read_zarr3(const std::string& text, tensor::BufferPool& pool, core::MemoryReservation* memory = nullptr);
/// .zarray, .zgroup, .zattrs. Throws the same.
ZarrMetadata read_zarr2_array(const std::string& text, tensor::BufferPool& pool,
                              core::MemoryReservation* memory = nullptr);
ZarrMetadata read_zarr2_group(const std::string& text, core::MemoryReservation* memory = nullptr);
ZarrMetadata read_zarr2_attributes(const std::string& text, core::MemoryReservation* memory = nullptr);

}  // namespace meshd::api
