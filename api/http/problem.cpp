#include "api/http/problem.h"

#include <fmt/core.h>

#include <new>
#include <string>

#include "service/core/error_codes.h"

namespace meshd::api {

int status_of(core::ErrorKind kind) {
  switch (kind) {
    case core::ErrorKind::kMalformed:
      return 400;
    case core::ErrorKind::kUnauthorized:
      return 401;
    case core::ErrorKind::kForbidden:
      return 403;
    case core::ErrorKind::kNotFound:
      return 404;
    case core::ErrorKind::kMethodNotAllowed:
      return 405;
    case core::ErrorKind::kNotAcceptable:
      return 406;
    case core::ErrorKind::kTimeout:
      return 408;
    case core::ErrorKind::kConflict:
      return 409;
    case core::ErrorKind::kGone:
      return 410;
    case core::ErrorKind::kPrecondition:
      return 412;
    case core::ErrorKind::kTooLarge:
      return 413;
    case core::ErrorKind::kUriTooLong:
      return 414;
    case core::ErrorKind::kUnsupportedMedia:
      return 415;
    case core::ErrorKind::kRange:
      return 416;
    case core::ErrorKind::kExpectation:
      return 417;
    case core::ErrorKind::kInvalid:
      return 422;
    case core::ErrorKind::kPreconditionRequired:
      return 428;
    case core::ErrorKind::kTooMany:
      return 429;
    case core::ErrorKind::kHeadTooLarge:
      return 431;
    case core::ErrorKind::kInternal:
      return 500;
    case core::ErrorKind::kNotImplemented:
      return 501;
    case core::ErrorKind::kUnavailable:
      return 503;
    case core::ErrorKind::kVersion:
      return 505;
    case core::ErrorKind::kDiskFull:
      return 507;
  }
  return 500;
}

template <>
Schema<core::Diagnostic> make_schema() {
  using Entry = core::Diagnostic;
  static constexpr auto kUnlessZero = [](int place) { return place > 0 ? std::optional(place) : std::nullopt; };
  return {"ProblemEntry",
          {{"pointer", &Entry::pointer},
           {"detail", &Entry::detail},
           {"line", [](const Entry& entry) { return kUnlessZero(entry.line); }, {.low = 1}},
           {"column", [](const Entry& entry) { return kUnlessZero(entry.column); }, {.low = 1}},
           {"excerpt", [](const Entry& entry) { return unless_empty(entry.excerpt); }}}};
}

template <>
Schema<ProblemDocument> make_schema() {
  using Doc = ProblemDocument;
  return {"Problem",
          {{"type", &Doc::type},
           {"title", &Doc::title},
           {"status", &Doc::status, {.low = 400, .high = 599}},
           {"detail", &Doc::detail},
           {"instance", &Doc::instance},
           {"trace_id", [](const Doc& doc) { return unless_empty(doc.trace_id); }},
           {"code", &Doc::code},
           {"hint", &Doc::hint},
           {"errors", &Doc::errors},
           {"error", &Doc::error}}};
}

namespace {

Response make_problem(const core::Error& error, std::string_view request_id, std::string_view path,
                      std::string_view trace_id) {
  const core::ErrorRow& row = core::row_of(error.code());
  const int status = status_of(row.kind);
  ProblemDocument document{fmt::format("/docs/errors#{}", row.word),
                           std::string(row.title),
                           status,
                           error.detail(),
                           std::string(request_id),
                           std::string(trace_id),
                           std::string(row.word),
                           std::string(row.hint),
                           error.diagnostics(),
                           {}};
  if (path == "/v2" || path.starts_with("/v2/")) document.error = error.detail();
  // Text that a client sent may be quoted in a detail: whatever is not UTF-8 in it is replaced.
  Response response = content(status, "application/problem+json", to_json(document) + "\n");
  response.error_code = row.word;
  response.headers.add("Cache-Control", "no-store");
  if (error.retry_after_seconds() > 0) response.headers.add("Retry-After", std::to_string(error.retry_after_seconds()));
  if (status == 401) response.headers.add("WWW-Authenticate", "Bearer realm=\"meshd\"");
  return response;
}

}  // namespace

Response problem(const core::Error& error, std::string_view request_id, std::string_view path) {
  return make_problem(error, request_id, path, {});
}

Response problem(const core::Error& error, const Request& request) {
  return make_problem(error, request.request_id, request.path, request.trace_id);
}

core::Error no_memory() {
  return core::Error("overloaded", "there is not enough memory for this request now").with_retry_after(1);
}

Response problem(const std::exception_ptr& thrown, std::string_view request_id, std::string_view path) {
  try {
    std::rethrow_exception(thrown);
  } catch (const core::Error& error) {
    return problem(error, request_id, path);
  } catch (const std::bad_alloc&) {
    return problem(no_memory(), request_id, path);
  } catch (...) {
    return problem(
        core::Error("internal", "something went wrong on our side; the log has more under this request's id"),
        request_id, path);
  }
}

}  // namespace meshd::api
