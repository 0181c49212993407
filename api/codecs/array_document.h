// Arrays, their shards and their placement as JSON.
#pragma once

#include <string>

#include "service/arrays/array.h"

namespace meshd::api {

/// The document of an array: id, dtype, shape, sharding, mesh, state, durability, version and so on.
std::string array_document(arrays::Array& array);
/// Strong ETag of the array's bytes.
std::string array_etag(arrays::Array& array);

}  // namespace meshd::api
