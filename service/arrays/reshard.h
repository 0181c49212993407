// A new array with the values of another one, with another sharding (POST /v1/arrays/{id}:reshard). JAX: device_put of
// an array to another NamedSharding; behaviour A10.
#pragma once

#include <optional>
#include <string>

#include "service/arrays/array_store.h"

namespace meshd::arrays {

/// What the new array is to be; without a value, as the old one is.
struct ReshardTarget {
  std::string mesh_id;
  /// Verified, over the mesh with this id. Where that mesh is abstract (no devices), the new array is on the mesh of
  /// the old one, which must have the same axes.
  sharding::TensorSharding sharding;
  std::optional<std::string> name;
  std::optional<storage::Durability> durability;
  std::optional<storage::IdempotencyRow> key = std::nullopt;  ///< as of NewArray
};

/// Copies block by block, each element once, and publishes the new array; the old one stays. Example: float32[8] over
/// x = 4 (shards of 2) to x = 2 (shards of 4): four blocks of 2 elements, shards 0 and 1 into the new shard 0.
/// Throws invalid_array where an abstract mesh has other axes than the array's, and what ArrayStore::begin, shards and
/// publish throw. Any thread.
ArrayRef reshard(ArrayStore& store, const ArrayRef& from, ReshardTarget target, const std::string& principal);

}  // namespace meshd::arrays
