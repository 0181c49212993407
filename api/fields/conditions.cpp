#include "api/fields/conditions.h"

#include <fmt/core.h>

#include <array>

#include "api/http/characters.h"
#include "api/http/problem.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr std::array<std::string_view, 2> kCodings = {"+gzip\"", "+zstd\""};

/// "abc+zstd" as "abc": the validator of the plain representation.
std::string plain(std::string_view etag) {
  for (const std::string_view coding : kCodings) {
    if (etag.ends_with(coding)) return std::string(etag.substr(0, etag.size() - coding.size())) + "\"";
  }
  return std::string(etag);
}

core::Error failed(std::string_view etag, std::string_view field, std::string_view value) {
  return core::Error(
      "precondition_failed",
      fmt::format("the resource is at {}, {} says {}; read it again and decide anew", etag, field, value));
}

}  // namespace

bool names_etag(std::string_view list, std::string_view etag, bool weak) {
  std::string_view element;
  while (next_list_element(list, element)) {
    if (element == "*") return true;
    if (element.starts_with("W/")) {
      if (!weak) continue;
      element.remove_prefix(2);
    }
    if (plain(element) == etag) return true;
  }
  return false;
}

void require_match(const Request& request, std::string_view etag) {
  const std::string match = request.headers.joined("If-Match");
  if (request.headers.has("If-Match") && !names_etag(match, etag, false)) throw failed(etag, "If-Match", match);
  const std::string none = request.headers.joined("If-None-Match");
  if (!none.empty() && names_etag(none, etag, true)) throw failed(etag, "If-None-Match", none);
}

void apply_conditions(const Request& request, Response& response) {
  if ((response.status != 200 && response.status != 206) || (request.method != "GET" && request.method != "HEAD"))
    return;
  const auto found = response.headers.get("ETag");
  if (!found) return;
  const std::string etag(*found);
  if (request.headers.has("If-Match")) {
    const std::string match = request.headers.joined("If-Match");
    if (!names_etag(match, etag, false)) {
      response = problem(failed(etag, "If-Match", match), request);
      return;
    }
  }
  const std::string none = request.headers.joined("If-None-Match");
  if (none.empty() || !names_etag(none, etag, true)) return;
  Response unchanged;
  unchanged.status = 304;
  for (const auto& [name, value] : response.headers.fields()) {
    // RFC 9110 15.4.5: what caches need, nothing of the body.
    constexpr std::array<std::string_view, 5> kKept = {"ETag", "Vary", "Cache-Control", "Location", "Content-Location"};
    for (const std::string_view kept : kKept) {
      if (equal_ignoring_case(name, kept)) unchanged.headers.add(name, value);
    }
  }
  response = std::move(unchanged);
}

std::string coded_etag(std::string_view etag, std::string_view coding) {
  if (etag.size() < 2 || etag.back() != '"') return std::string(etag);
  return std::string(etag.substr(0, etag.size() - 1)) + "+" + std::string(coding) + "\"";
}

}  // namespace meshd::api
