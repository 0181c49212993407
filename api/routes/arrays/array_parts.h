// What handlers of arrays share: the response that describes one, parts, index maps.
#pragma once

#include <vector>

#include "api/http/http.h"
#include "api/json/schema.h"
#include "api/routes/services.h"

namespace meshd::api {

/// The document of an array with its ETag and Location.
Response described(arrays::Array& array, int status);
/// PUT /v1/arrays/{id}/shards/{device} of an array that is being put together.
Response put_shard(Request& request, Services& services, const arrays::ArrayRef& array, int64_t device);
/// POST /v1/shardings:resolve: what a sharding means in numbers; nothing is stored.
Response resolve_sharding(Request& request, Services& services);
/// POST /v1/arrays/{id}:compare.
Response compare_arrays(Request& request, Services& services, const arrays::ArrayRef& array);

/// The documents of these routes, and of /v1/arrays:assemble.
std::vector<const SchemaBase*> array_query_schemas();
const SchemaBase& assemble_schema();

}  // namespace meshd::api
