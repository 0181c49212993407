// The pages under /docs: files that api/console/make_pages.py made when the server was built, and those of ops and
// errors, which the server fills from its tables.
#pragma once

#include <string>
#include <string_view>

#include "api/codecs/explain/html.h"
#include "api/http/http.h"

namespace meshd::api {

/// The page or asset at this path of its URL, with its ETag. Throws not_found where there is none. Any thread.
Response site_file(std::string_view path);
/// The page at this path around what is only known here.
Response site_page(std::string_view path, const PageParts& parts);
/// The search index with these entries after those of guides and operations.
Response search_index(std::string_view entries);

}  // namespace meshd::api
