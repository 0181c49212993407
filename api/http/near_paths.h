// Paths that may have been meant where a request names none that there is.
#pragma once

#include <string>
#include <string_view>

#include "api/http/router.h"

namespace meshd::api {

/// "; did you mean '/v1/arrays/{id}/data' (GET, PUT)?" for the template nearest to `path`, which is raw and matches
/// none, with its methods; empty where none is near. Segments are compared one by one: those of ids match any text,
/// others may be misspelt (core/near_names.h), and a beginning "/v1" or an end "/" may be wrong.
std::string path_advice(const Router& router, std::string_view path);

}  // namespace meshd::api
