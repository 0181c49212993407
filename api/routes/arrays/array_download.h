// Downloads of arrays: raw, .npy or JSON, complete, sliced or a byte range, from the shards' memory.
#pragma once

#include "api/http/http.h"
#include "api/routes/services.h"

namespace meshd::api {

/// GET /v1/arrays/{id}/data.
Response download_array(Request& request, Services& services, const arrays::ArrayRef& array);
/// GET /v1/arrays/{id}/shards/{device}: the bytes of the shard on that device.
Response download_shard(Request& request, Services& services, const arrays::ArrayRef& array, int64_t device);

}  // namespace meshd::api
