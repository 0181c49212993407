// Conditions of requests that change something (RFC 9110 chapter 13).
#pragma once

#include <string>

#include "api/http.h"

namespace meshd::api {

/// Throws precondition_failed when If-Match lists neither `etag` nor *, or If-None-Match lists it. `etag` is strong;
/// weak ones in If-Match match nothing.
void check_if_match(const Request& request, const std::string& etag);

}  // namespace meshd::api
