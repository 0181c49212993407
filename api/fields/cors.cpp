#include "api/fields/cors.h"

#include <string>

namespace meshd::api {
namespace {

/// The request fields that some route reads.
constexpr std::string_view kRequestFields =
    "Accept, Authorization, Content-Digest, Content-Encoding, Content-Type, Idempotency-Key, If-Match, If-None-Match, "
    "If-Range, Last-Event-ID, Prefer, Range, Repr-Digest, traceparent, tracestate, Want-Content-Digest, "
    "Want-Repr-Digest, X-Api-Key, X-Request-Id";
/// The fields of responses that scripts may read beside those that they always may (Content-Type, Cache-Control, ...).
constexpr std::string_view kAnswerFields =
    "Accept-Encoding, Accept-Ranges, Allow, Array-Dtype, Array-Order, Array-Shape, Content-Digest, "
    "Content-Disposition, Content-Encoding, Content-Range, Date, ETag, Idempotency-Replayed, Link, Location, "
    "Preference-Applied, RateLimit, RateLimit-Policy, Repr-Digest, Retry-After, Server-Timing, traceparent, "
    "WWW-Authenticate, X-Request-Id";
constexpr std::string_view kMaxAge = "600";  // seconds: a restart with other options is seen soon

void vary(Response& response, std::string_view names) {
  std::string value = response.headers.joined("Vary");
  if (!value.empty()) value += ", ";
  response.headers.set("Vary", value + std::string(names));
}

}  // namespace

void allow_origin(std::string_view origin, Response& response) {
  vary(response, "Origin");
  if (origin.empty()) return;
  response.headers.set("Access-Control-Allow-Origin", origin);
  response.headers.set("Access-Control-Expose-Headers", kAnswerFields);
}

void answer_preflight(const Headers& headers, Response& response) {
  if (!headers.has("Access-Control-Request-Method")) return;
  const std::string allow = response.headers.joined("Allow");
  response.headers.set("Access-Control-Allow-Methods", allow);
  response.headers.set("Access-Control-Allow-Headers", kRequestFields);
  response.headers.set("Access-Control-Max-Age", kMaxAge);
  // From a page of the internet to an address of a private network browsers request this as well.
  if (headers.get("Access-Control-Request-Private-Network") == "true")
    response.headers.set("Access-Control-Allow-Private-Network", "true");
  vary(response, "Access-Control-Request-Method, Access-Control-Request-Headers");
}

}  // namespace meshd::api
