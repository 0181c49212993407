// What the rows of models share: names and versions of paths.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/routes/routes.h"
#include "service/models/model_store.h"

namespace meshd::api {

/// A version of a path or a query. Throws not_found for what is no number.
int64_t version_of(std::string_view text);
/// The {version} of a path; nothing where the row has none. Throws not_found.
std::optional<int64_t> version_in(const Request& request);
/// The model of a path with {name}, and {version} where the row has it. Throws not_found.
models::ModelRef model_of(const Request& request, Services& services);
/// The rows by file.
std::vector<Route> inference_routes(Services& services, const ProcessFacts& facts);
std::vector<Route> model_metadata_routes(Services& services, const ProcessFacts& facts);
Schemas model_metadata_schemas();
std::vector<Route> repository_routes(Services& services);
std::vector<Route> refused_extension_routes();

}  // namespace meshd::api
