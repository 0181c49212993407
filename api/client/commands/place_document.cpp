#include "api/client/commands/place_document.h"

#include <fmt/core.h>

namespace meshd::client {

void add_place(Json& request, const PlaceOptions& place, bool has_devices) {
  if (!place.mesh.empty()) request["mesh"] = mesh_document(place.mesh, has_devices);
  const auto add = [&request](const char* field, const std::vector<std::string>& specs) {
    for (const std::string& spec : specs) request[field].push_back(sharding_document(spec));
  };
  add("in_shardings", place.in);
  add("out_shardings", place.out);
  if (!place.donated.empty()) request["donate"] = place.donated;
  for (const std::string& each : place.constants) {
    const size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Failure(kUsage, fmt::format("--static '{}': expected NAME=VALUE, such as n=3", each));
    }
    const std::string value = each.substr(equals + 1);
    Json parsed = Json::parse(value, nullptr, false);
    // A word that is no JSON is a text: mode=same.
    request["static"][each.substr(0, equals)] = parsed.is_discarded() ? Json(value) : parsed;
  }
}

}  // namespace meshd::client
