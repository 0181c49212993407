// An array as text, and what a sharding means in numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "service/arrays/array.h"
#include "service/mesh/processes.h"
#include "service/sharding/layout.h"

namespace meshd::api {

/// float32[8,2]
std::string array_text(const arrays::Array& array);
/// Array(shape=(8, 2), dtype=float32, mesh=Mesh('x': 4, 'y': 2), spec=[["x"],[]])
std::string array_repr(const arrays::Array& array);

/// Whose shards are listed, and as whom.
struct ShardScope {
  bool local_only = false;                 ///< those of `process` alone
  int64_t process = -1;                    ///< -1: the client acts as all of them
  std::vector<bool> received;              ///< of a pending array, by position; empty: all
  std::optional<bool> only_received = {};  ///< only those that have come, or only those that have not
};

/// One JSON document for each place of the layout: position, device, process, index, replica_id, shard, shape, and with
/// `data_path` where its bytes are; null for places of other processes. Places of a pending array say whether their
/// part has come.
std::vector<std::string> device_shard_documents(const sharding::Layout& layout, const mesh::Processes& processes,
                                                const ShardScope& scope, const std::string& data_path);

}  // namespace meshd::api
