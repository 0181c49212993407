// Taking in an array: the body's bytes go from the socket into its shards.
#pragma once

#include <string>

#include "api/http/http.h"
#include "api/routes/services.h"

namespace meshd::api {

/// POST /v1/arrays in all its forms: application/x-npy, application/octet-stream with ?dtype= and ?shape=, a JSON
/// VALUE, multipart/form-data with one part `file`. The new array is published when this returns.
arrays::ArrayRef upload_array(Request& request, Services& services, std::optional<storage::IdempotencyRow> key);

}  // namespace meshd::api
