// Conditional requests (RFC 9110 chapter 13) with strong validators. The validator of a coded response is that of the
// plain one with the coding's name behind it ("abc+zstd"), and identifies the same state of the resource. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "api/http/http.h"

namespace meshd::api {

/// True when `list`, the value of If-Match or If-None-Match, is "*" or names `etag`. Weak validators match only where
/// `weak` is true, as If-None-Match allows. Example: "\"a\", \"b+gzip\"" names "\"b\"".
bool names_etag(std::string_view list, std::string_view etag, bool weak);

/// For requests that change a resource: throws precondition_failed when If-Match is there and does not name `etag`, or
/// If-None-Match is there and does.
void require_match(const Request& request, std::string_view etag);

/// Turns a 200 or 206 to GET or HEAD that has an ETag into the 412 or 304 that If-Match and If-None-Match require.
void apply_conditions(const Request& request, Response& response);

/// "abc" with the coding's name: "abc+zstd".
std::string coded_etag(std::string_view etag, std::string_view coding);

}  // namespace meshd::api
