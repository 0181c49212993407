#include "api/fields/preferences.h"

#include <algorithm>

#include "api/http/characters.h"
#include "api/json/json_numbers.h"

namespace meshd::api {

Preferences preferences_of(const Request& request) {
  Preferences out;
  const std::string header = request.headers.joined("Prefer");
  std::string_view list = header;
  std::string_view element;
  while (next_list_element(list, element)) {
    element = trim(element.substr(0, element.find(';')));
    const size_t equals = std::min(element.find('='), element.size());
    const std::string_view name = trim(element.substr(0, equals));
    std::string_view value = trim(element.substr(std::min(equals + 1, element.size())));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (equal_ignoring_case(name, "respond-async")) {
      out.respond_async = true;
    } else if (equal_ignoring_case(name, "wait") && !out.wait_seconds) {
      if (const auto seconds = whole_number(value)) out.wait_seconds = std::min(*seconds, kLongestWaitSeconds);
    } else if (equal_ignoring_case(name, "return") && out.wanted == Preferences::Return::kNothing) {
      if (equal_ignoring_case(value, "minimal")) out.wanted = Preferences::Return::kMinimal;
      if (equal_ignoring_case(value, "representation")) out.wanted = Preferences::Return::kRepresentation;
    }
  }
  return out;
}

void note_applied(Response& response, std::string_view preference) {
  std::string value = response.headers.joined("Preference-Applied");
  if (!value.empty()) value += ", ";
  response.headers.set("Preference-Applied", value + std::string(preference));
}

void apply_return_preference(const Request& request, Response& response) {
  if ((response.status != 201 && response.status != 202) || !request.headers.has("Prefer")) return;
  const Preferences::Return wanted = preferences_of(request).wanted;
  if (wanted == Preferences::Return::kRepresentation) note_applied(response, "return=representation");
  if (wanted != Preferences::Return::kMinimal || !response.headers.has("Location")) return;
  response.body = std::string();
  response.headers.remove("Content-Type");
  note_applied(response, "return=minimal");
}

}  // namespace meshd::api
