#include "api/client/documents/array_path.h"

#include "api/client/documents/listing.h"
#include "service/core/ids.h"

namespace meshd::client {

std::string array_path(std::string_view name) {
  if (core::looks_like_id(name, "arr")) return "/v1/arrays/" + std::string(name);
  // A name may end in "/data": all of its slashes are encoded.
  return "/v1/arrays/by-name/" + percent_encoded(name);
}

Json array_document(Connection& connection, std::string_view name) {
  return get_document(connection, array_path(name));
}

}  // namespace meshd::client
