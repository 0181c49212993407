// Whether two arrays are alike (POST /v1/arrays/{id}:compare).
#pragma once

#include "service/arrays/array_store.h"

namespace meshd::arrays {

/// In what two arrays are compared, beside dtype and shape.
enum class Likeness : uint8_t {
  kBits,       ///< the bytes of all elements, however each array is sharded; a NaN equals a NaN of the same bits
  kPlacement,  ///< mesh and sharding, whatever the values; no data is read
};

/// Reads both row-major, a piece at a time, up to the first difference. Throws what ArrayStore::open throws, for kBits
/// of arrays of one type only. Any thread.
bool are_alike(ArrayStore& store, const ArrayRef& left, const ArrayRef& right, Likeness likeness);

}  // namespace meshd::arrays
