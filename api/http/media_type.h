// Content-Type of requests. Pure; any thread.
#pragma once

#include <string>

#include "api/http/http.h"

namespace meshd::api {

/// The media type of the request's body in lower case, without parameters; empty when the request names none.
std::string media_type_of(const Headers& headers);

/// Throws unsupported_media_type unless Content-Type is application/json or absent. A page of another site can send
/// forms and plain text without a CORS preflight, but not this type.
void require_json(const Headers& headers);

}  // namespace meshd::api
