// Arrays by their names, and many of them by a prefix: /v1/arrays/by-name/... and ?prefix=.
#pragma once

#include <string>
#include <vector>

#include "api/http/http.h"
#include "api/json/schema.h"
#include "api/routes/services.h"

namespace meshd::api {

/// What a new array comes in place of, when the request has If-Match: the array that the name addresses.
struct Replacement {
  std::vector<arrays::ArrayRef> arrays;  ///< one or none
  arrays::ArrayStore::VersionCheck check;

  [[nodiscard]] std::vector<std::string> ids() const;
};
/// Throws precondition_failed where the name addresses no array or one with another ETag, invalid_query for If-Match
/// without a name. The request must live as long as what it returns.
Replacement replacement_of(const Request& request, Services& services, const std::string& name);
/// The same where the caller has found the array that the name addresses: `held`, null where there is none.
Replacement replacement_of(const Request& request, const arrays::ArrayRef& held, const std::string& name);

/// PUT /v1/arrays/by-name/{name...}/data: a new version of the array that the name addresses, where the body has its
/// type; with If-Match another array in its place; where there is none, a new array that holds the name.
Response put_named_data(Request& request, Services& services);

/// DELETE /v1/arrays?prefix=: every array whose name begins so, in one transaction: all of them, or none.
Response delete_prefix(Request& request, Services& services);
const SchemaBase& deleted_schema();

}  // namespace meshd::api
