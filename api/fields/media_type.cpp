#include "api/fields/media_type.h"

#include <algorithm>

#include "api/http/characters.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

// Several fields are joined: none of them is taken for the one that counts.
std::string type_in(std::string_view given) {
  const std::string_view type = trim(given.substr(0, given.find(';')));
  std::string out(type.size(), ' ');
  std::transform(type.begin(), type.end(), out.begin(), to_lower);
  return out;
}

void require(const Headers& headers, bool takes_forms) {
  if (!headers.has("Content-Type")) return;
  const std::string given = headers.joined("Content-Type");
  const std::string type = type_in(given);
  const bool is_one = given.find(',') == std::string::npos;
  if (is_one && (type == "application/json" || (takes_forms && type == kFormMedia))) return;
  std::string detail = "this operation takes JSON, Content-Type says '" + type + "'";
  if (type == "application/x-www-form-urlencoded") detail += ", as curl --data does unless it is told otherwise";
  throw core::Error("unsupported_media_type", detail + ": send -H 'Content-Type: application/json'");
}

}  // namespace

std::string media_type_of(const Headers& headers) { return type_in(headers.joined("Content-Type")); }

void require_json(const Headers& headers) { require(headers, false); }

void require_json_or_form(const Headers& headers) { require(headers, true); }

void require_protocol_media(const Headers& headers) {
  const std::string type = media_type_of(headers);
  if (type.empty() || type == "application/json" || type == "application/octet-stream") return;
  throw core::Error(
      "unsupported_media_type",
      "this operation takes application/json, application/octet-stream or no Content-Type, got '" + type + "'");
}

}  // namespace meshd::api
