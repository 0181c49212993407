// Resumable uploads: /v1/uploads, and what makes operations with a body of array bytes begin one.
#pragma once

#include "api/http/router.h"
#include "api/json/schema.h"
#include "api/routes/services.h"

namespace meshd::api {

/// Adds the rows of uploads. Every row with a body of array bytes (kBulk) that is there by then takes it in several
/// requests from here on, when the first has the field Upload-Complete. The router's rows must outlive the handlers.
void add_upload_routes(Router& router, Services& services);

/// The documents of these routes.
std::vector<const SchemaBase*> upload_schemas();

}  // namespace meshd::api
