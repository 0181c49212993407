// The list of functions of NumPy syntax as JSON, made from the table.
#pragma once

#include <string>

#include "api/json/schema.h"

namespace meshd::api {

/// Of the list of functions.
const SchemaBase& functions_schema();

/// {"items": [...], "next": null}. Made once.
const std::string& functions_document();

}  // namespace meshd::api
