#include "api/client/text/problem_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/client/text/json.h"

namespace meshd::client {
namespace {

constexpr size_t kMostOfABody = 300;

std::string indented(std::string_view text, std::string_view margin) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.append(margin).append(text.substr(0, end)).push_back('\n');
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string text_of(const Json& document, const char* field) {
  const auto found = document.find(field);
  return found != document.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// "line 2, column 8: ", "/arguments/0: ", or nothing.
std::string place_of(const Json& entry) {
  if (entry.contains("line")) {
    return entry.contains("column") ? fmt::format("line {}, column {}: ", entry["line"].dump(), entry["column"].dump())
                                    : fmt::format("line {}: ", entry["line"].dump());
  }
  const std::string pointer = text_of(entry, "pointer");
  return pointer.empty() ? std::string() : pointer + ": ";
}

}  // namespace

std::string problem_text(int status, std::string_view body) {
  const Json document = Json::parse(body, nullptr, false);
  if (!document.is_object() || text_of(document, "detail").empty()) {
    const std::string_view first = body.substr(0, std::min(body.find('\n'), kMostOfABody));
    return first.empty() ? fmt::format("the server answers {}", status)
                         : fmt::format("the server answers {}: {}", status, first);
  }
  const std::string detail = text_of(document, "detail");
  const std::string code = text_of(document, "code");
  std::string out = code.empty() ? detail + "\n" : fmt::format("{} [{}]\n", detail, code);
  const auto errors = document.find("errors");
  if (errors != document.end() && errors->is_array()) {
    for (const Json& entry : *errors) {
      if (!entry.is_object()) continue;
      const std::string excerpt = text_of(entry, "excerpt");
      const std::string line = place_of(entry) + text_of(entry, "detail");
      // The detail of a problem with one mistake repeats it.
      if (line != detail) out += fmt::format("  {}\n", line);
      if (!excerpt.empty()) out += indented(excerpt, "    | ");
    }
  }
  const std::string hint = text_of(document, "hint");
  if (!hint.empty()) out += fmt::format("hint: {}\n", hint);
  if (status >= 500) out += fmt::format("request: {}\n", text_of(document, "instance"));
  out.pop_back();
  return out;
}

Failure failure_of(int status, std::string_view body) {
  const ExitCode code = status == 401 || status == 403                   ? kNoPermission
                        : status == 429 || status == 408 || status > 499 ? kUnavailable
                                                                         : kRefused;
  const Json document = Json::parse(body, nullptr, false);
  return {code, problem_text(status, body), document.is_object() ? document.dump() : std::string()};
}

}  // namespace meshd::client
