// Arrays, their shards and their placement as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/schema.h"
#include "service/arrays/array.h"
#include "service/mesh/processes.h"

namespace meshd::api {

inline const std::vector<std::string_view> kDurabilities{to_string(storage::Durability::kDurable),
                                                         to_string(storage::Durability::kMemory)};
/// What one of these words means.
inline storage::Durability durability_of(std::string_view word) {
  return storage::durability_from(word).value_or(storage::Durability::kDurable);
}

/// Parts that a pending array waits for.
struct PendingDocument {
  int64_t parts = 0, missing = 0;
  std::vector<int64_t> missing_devices;  ///< the first hundred; GET .../shards?state=missing lists all
  int64_t bytes = 0;
  core::WallTime expires;
};

/// An array as it is now: dtype, shape, sharding, mesh, state, version and so on.
struct ArrayDocument {
  explicit ArrayDocument(arrays::Array& shown);

  arrays::Array& array;
  std::string_view state;
  std::string reason;
  int64_t version = 0;
  bool is_unique = false;  ///< it holds its name
  std::optional<PendingDocument> pending;

  /// Strong ETag of the version that is shown.
  [[nodiscard]] std::string etag() const;
};
template <>
Schema<ArrayDocument> make_schema();

/// Strong ETag of the bytes of a version.
std::string array_etag(std::string_view id, int64_t version);

/// What one device holds of an array.
struct ShardDocument {
  const sharding::DeviceShard& shard;
  int64_t process = 0;
  std::optional<Nullable<std::string>> data;  ///< where its bytes are; null for places of other processes
  std::optional<bool> received;               ///< of a pending array
};
template <>
Schema<ShardDocument> make_schema();

/// Which devices' shards are listed, for which process.
struct ShardScope {
  bool local_only = false;                 ///< those of `process` alone
  int64_t process = -1;                    ///< -1: the client acts as all of them
  std::vector<bool> received;              ///< of a pending array, by position; empty: all
  std::optional<bool> only_received = {};  ///< only those that have come, or only those that have not
};

/// One for each position of the layout, which must outlive them; with `data_path` each has the path of its bytes.
std::vector<ShardDocument> shard_documents(const sharding::Layout& layout, const mesh::Processes& processes,
                                           const ShardScope& scope, const std::string& data_path);

}  // namespace meshd::api
