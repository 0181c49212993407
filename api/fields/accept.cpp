#include "api/fields/accept.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <tuple>

#include "api/http/characters.h"

namespace meshd::api {
namespace {

// How closely an entry names a media type: 3 itself, 2 its family, 1 any; 0 not.
int closeness(std::string_view entry, std::string_view media) {
  if (equal_ignoring_case(entry, media)) return 3;
  if (entry == "*/*") return 1;
  const size_t slash = media.find('/');
  return entry.ends_with("/*") && equal_ignoring_case(entry.substr(0, entry.size() - 2), media.substr(0, slash)) ? 2
                                                                                                                 : 0;
}

}  // namespace

bool next_weighted(std::string_view& list, Weighted& entry) {
  std::string_view element;
  if (!next_list_element(list, element)) return false;
  const size_t semicolon = std::min(element.find(';'), element.size());
  entry = {trim(element.substr(0, semicolon))};
  for (std::string_view rest = element.substr(semicolon); !rest.empty();) {
    rest.remove_prefix(1);
    const size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view parameter = trim(rest.substr(0, end));
    rest.remove_prefix(end);
    if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) continue;
    double weight = 0;
    std::from_chars(parameter.data() + 2, parameter.data() + parameter.size(), weight);
    // Not a number compares with nothing.
    entry.weight = weight > 0 ? static_cast<int>(std::min(weight, 1.0) * 1000) : 0;
  }
  return true;
}

std::optional<size_t> preferred_media(const Request& request, std::span<const std::string_view> offered) {
  const std::string accept = request.headers.joined("Accept");
  if (trim(accept).empty()) return 0;
  std::optional<size_t> best;
  std::tuple<int, int> best_rank;
  for (size_t i = 0; i < offered.size(); ++i) {
    int closest = 0;
    std::tuple<int, int> rank;  // weight, how early in the list
    std::string_view rest = accept;
    Weighted entry;
    for (int at = 0; next_weighted(rest, entry); --at) {
      const int close = closeness(entry.name, offered[i]);
      if (close <= closest) continue;
      closest = close;
      rank = {entry.weight, at};
    }
    if (closest == 0 || std::get<0>(rank) == 0 || (best && rank <= best_rank)) continue;
    best = i;
    best_rank = rank;
  }
  if (best) return best;
  std::string_view rest = accept;
  for (Weighted entry; next_weighted(rest, entry);) {
    if (entry.name == "application/problem+json" && entry.weight > 0) return 0;
  }
  return std::nullopt;
}

}  // namespace meshd::api
