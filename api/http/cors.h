// Answers to pages of origins that the operator named (WHATWG Fetch, CORS protocol): who may read them, and what a
// preflight asks. Pure; any thread.
#pragma once

#include <string_view>

#include "api/http/http.h"

namespace meshd::api {

/// Lets pages of `origin` read the answer and its fields; with an empty one it only says that answers depend on Origin.
/// Never with credentials: tokens come in Authorization, and there are no cookies.
void allow_origin(std::string_view origin, Response& response);

/// Makes the answer to OPTIONS that of a preflight, where `headers` ask for one (Access-Control-Request-Method): the
/// methods are those of its Allow.
void answer_preflight(const Headers& headers, Response& response);

}  // namespace meshd::api
