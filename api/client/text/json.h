// Documents of the server as the client reads them: any fields, in their order. The client shows what there is; a newer
// server may have more.
#pragma once

#include <nlohmann/json.hpp>

namespace meshd::client {

using Json = nlohmann::ordered_json;

}  // namespace meshd::client
