// New data for an array that is there.
#pragma once

#include "api/http/http.h"
#include "api/routes/services.h"

namespace meshd::api {

/// PUT /v1/arrays/{id}/data[?slice=]: the next version, all of it or a part. dtype, shape and placement stay.
Response put_array_data(Request& request, Services& services, const arrays::ArrayRef& array);

}  // namespace meshd::api
