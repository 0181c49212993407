// Detects unknown environment variables MESHD_...: a misspelt one (for a tokens file, a limit) must not be ignored.
// Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshd::api {

/// One line for each entry "NAME=value" of `environment` whose name starts with MESHD_ and is not in `known`, with the
/// nearest known name where one is near. Not counted: what ./dev itself reads, and what container platforms set for
/// every service that they know (Kubernetes, for a service `meshd`: MESHD_SERVICE_HOST, MESHD_PORT=tcp://...).
std::vector<std::string> unknown_variables(std::span<const std::string_view> environment,
                                           std::span<const std::string> known);

}  // namespace meshd::api
