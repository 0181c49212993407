// Files that travel inside the binary (cmake/meshd_embed.cmake makes these functions).
#pragma once

#include <string_view>

namespace meshd::api::embedded {

/// openapi/openapi.yaml as it is in the repository, and the same document as JSON.
std::string_view openapi_yaml();
std::string_view openapi_json();
/// The page at /docs.
std::string_view docs_html();

}  // namespace meshd::api::embedded
