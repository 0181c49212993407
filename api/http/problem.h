// Problem details (RFC 9457): errors as application/problem+json. The one place where kinds of failure become HTTP
// statuses.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.h"
#include "api/json/schema.h"
#include "service/core/error.h"
#include "service/core/error_kind.h"

namespace meshd::api {

/// The HTTP status of a kind of failure. Nothing else maps them.
int status_of(core::ErrorKind kind);

/// RFC 9457 problem details, as a document.
struct ProblemDocument {
  std::string type, title;
  int64_t status = 0;
  std::string detail, instance;
  std::string trace_id;  ///< empty: none
  std::string code;
  std::string hint;  ///< that of the code
  std::vector<core::Diagnostic> errors;
  std::optional<std::string> error;  ///< under /v2 the detail again
};
template <>
Schema<ProblemDocument> make_schema();

/// The problem document: type (/docs/errors#<code>), title, status, detail, instance (the request id), code, hint
/// and errors[] of {pointer, detail, line?, column?, excerpt?}. Under /v2 (`path`) it also has `error`, as the Open
/// Inference Protocol requires. Adds Retry-After if the error has one and WWW-Authenticate to a 401.
Response problem(const core::Error& error, std::string_view request_id, std::string_view path = {});

/// The same with the request's own facts: its id, its path, and trace_id where the client sent a traceparent.
Response problem(const core::Error& error, const Request& request);

/// overloaded, for std::bad_alloc.
core::Error no_memory();
/// The problem for whatever was thrown: core::Error as above, bad_alloc as overloaded, anything else as internal with
/// no text of its own. Never throws.
Response problem(const std::exception_ptr& thrown, std::string_view request_id, std::string_view path = {});

}  // namespace meshd::api
