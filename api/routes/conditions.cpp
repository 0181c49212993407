#include "api/routes/conditions.h"

#include <string_view>

#include "api/characters.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

bool lists(std::string_view header, std::string_view etag) {
  for (std::string_view element; next_list_element(header, element);) {
    if (element == "*" || element == etag) return true;
  }
  return false;
}

}  // namespace

void check_if_match(const Request& request, const std::string& etag) {
  if (request.headers.has("If-Match") && !lists(request.headers.joined("If-Match"), etag)) {
    throw core::Error("precondition_failed",
                      "the data is at " + etag + ", If-Match says " + request.headers.joined("If-Match"));
  }
  if (request.headers.has("If-None-Match") && lists(request.headers.joined("If-None-Match"), etag)) {
    throw core::Error("precondition_failed",
                      "the data is at " + etag + ", If-None-Match says " + request.headers.joined("If-None-Match"));
  }
}

}  // namespace meshd::api
