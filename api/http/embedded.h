// Files that travel inside the binary (cmake/meshd_embed.cmake makes these functions).
#pragma once

#include <span>
#include <string_view>

namespace meshd::api::embedded {

/// openapi/openapi.yaml as it is in the repository, and the same document as JSON.
std::string_view openapi_yaml();
std::string_view openapi_json();

/// A page of the documentation, an asset of the pages, or the search index, as api/console/make_pages.py made it.
struct SiteFile {
  std::string_view path;  ///< of its URL
  std::string_view media_type, text, etag;
};
std::span<const SiteFile> site_files();

}  // namespace meshd::api::embedded
