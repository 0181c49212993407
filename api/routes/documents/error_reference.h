// What each error code means, how to mend it, and an example: GET /docs/errors as JSON and as a page.
#pragma once

#include <string>

#include "api/json/schema.h"

namespace meshd::api {

/// Of the list of codes.
const SchemaBase& error_schema();

/// {"items": [{"code", "title", "status", "hint", "example", "command"?}], "next": null} of all codes, in the order of
/// kErrorTable.
std::string error_document();
/// The same as HTML; each code is an anchor, where problems' `type` points.
std::string error_page();

}  // namespace meshd::api
