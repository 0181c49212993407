// Arrays, their shards and their placement as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "service/arrays/array.h"

namespace meshd::api {

/// The document of an array: id, dtype, shape, sharding, mesh, state, durability, version and so on.
std::string array_document(arrays::Array& array);
/// Strong ETag of the array's bytes.
std::string array_etag(arrays::Array& array);
/// The same for a version that is known.
std::string array_etag(std::string_view id, int64_t version);

}  // namespace meshd::api
