// The list of ops as JSON and as a page, both made from the table.
#pragma once

#include <string>

#include "api/codecs/explain/html.h"
#include "api/json/schema.h"

namespace meshd::api {

/// Of the list of ops.
const SchemaBase& ops_schema();

/// {"items": [...], "next": null}. The first call makes it, which takes some hundred milliseconds; later ones have it.
const std::string& ops_document();
/// The same for readers: an entry for each op, whose id is its name. As the document, made once.
const PageParts& ops_page();

}  // namespace meshd::api
