// Arrays as the command line names them: by id, or by name.
#pragma once

#include <string>
#include <string_view>

#include "api/client/text/json.h"
#include "api/client/transfer/connection.h"

namespace meshd::client {

/// "/v1/arrays/arr_..." of an id, "/v1/arrays/by-name/..." of a name.
std::string array_path(std::string_view name);
/// The document of an array, named in either way.
Json array_document(Connection& connection, std::string_view name);

}  // namespace meshd::client
