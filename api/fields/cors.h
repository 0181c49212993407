// CORS (WHATWG Fetch): responses to pages of origins that the operator allowed, and preflight requests. Pure; any
// thread.
#pragma once

#include <string_view>

#include "api/http/http.h"

namespace meshd::api {

/// Lets pages of `origin` read the response and its fields; with an empty one it only adds Vary: Origin. Never with
/// credentials: tokens come in Authorization, and there are no cookies.
void allow_origin(std::string_view origin, Response& response);

/// Turns the response to OPTIONS into that of a preflight, if `headers` make it one (Access-Control-Request-Method):
/// the methods are those of its Allow.
void answer_preflight(const Headers& headers, Response& response);

}  // namespace meshd::api
