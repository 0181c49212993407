// Content-Type of requests. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "api/http/http.h"

namespace meshd::api {

/// The media type of the request's body in lower case, without parameters; empty when the request names none.
std::string media_type_of(const Headers& headers);

/// Throws unsupported_media_type unless Content-Type is application/json or absent. A page of another site can send
/// forms and plain text without a CORS preflight, but not this type.
void require_json(const Headers& headers);
/// The same for JSON or a form (multipart/form-data), whose handler holds the part that is a document to its type.
void require_json_or_form(const Headers& headers);
/// The same for a POST of the Open Inference Protocol, whose clients name application/json, application/octet-stream or
/// no type at all.
void require_protocol_media(const Headers& headers);
/// The media type of a form with files.
inline constexpr std::string_view kFormMedia = "multipart/form-data";

}  // namespace meshd::api
