// What each error code means, how to mend it, and an example: GET /docs/errors as JSON and as a page.
#pragma once

#include <string>

#include "api/codecs/explain/html.h"
#include "api/json/schema.h"

namespace meshd::api {

/// Of the list of codes.
const SchemaBase& error_schema();

/// {"items": [{"code", "title", "status", "hint", "example", "command" or "only_when"}], "next": null} of all codes, in
/// the order of kErrorTable.
std::string error_document();
/// The same for readers, by status; each code is an anchor, where problems' `type` points. Made once.
const PageParts& error_page();

}  // namespace meshd::api
