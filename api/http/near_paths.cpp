#include "api/http/near_paths.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "service/core/near_names.h"

namespace meshd::api {
namespace {

constexpr std::string_view kVersion = "v1";
constexpr size_t kMostSegments = 12;
/// Less than the edits of two segments that are both nearly something else.
constexpr size_t kMostEdits = 4;

using Segments = std::vector<std::string_view>;

/// The segments that are not empty.
Segments segments_of(std::string_view path) {
  Segments out;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) out.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out;
}

/// Edits between a word and the one of a template, which it may also abbreviate or go on after ("grad", "gradient").
std::optional<size_t> edits_between(std::string_view given, std::string_view known) {
  constexpr size_t kLeastShared = 4;
  const size_t edits = core::edit_distance(given.substr(0, 64), known);
  if (edits < core::edit_limit(given)) return edits;
  const bool goes_on = given.starts_with(known) || known.starts_with(given);
  if (goes_on && std::min(given.size(), known.size()) >= kLeastShared) return 2;
  return std::nullopt;
}

/// Edits that make `given` a segment of the template. "{id}:grad" takes "x:gard" with 1.
std::optional<size_t> edits_to_match(std::string_view given, std::string_view known) {
  const size_t open = known.find('{');
  if (open == std::string_view::npos) return edits_between(given, known);
  const std::string_view suffix = known.substr(known.find('}') + 1);
  const size_t colon = given.rfind(':');
  if (suffix.starts_with(':')) {
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    return edits_between(given.substr(colon), suffix);
  }
  const bool fits = given.size() > open + suffix.size() && given.starts_with(known.substr(0, open)) &&
                    given.ends_with(suffix) && colon == std::string_view::npos;
  return fits ? std::optional<size_t>(0) : std::nullopt;
}

std::optional<size_t> edits_to_match(const Segments& given, const Segments& known) {
  if (given.size() != known.size()) return std::nullopt;
  size_t sum = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    const auto edits = edits_to_match(given[i], known[i]);
    if (!edits) return std::nullopt;
    sum += *edits;
  }
  return sum;
}

}  // namespace

std::string path_advice(const Router& router, std::string_view path) {
  const Segments given = segments_of(path);
  if (given.empty() || given.size() > kMostSegments) return {};
  Segments versioned{kVersion};
  versioned.insert(versioned.end(), given.begin(), given.end());
  size_t least = kMostEdits;
  std::string_view nearest;
  for (const auto& route : router.routes()) {
    const Segments known = segments_of(route->path);
    for (const Segments* form : {&given, static_cast<const Segments*>(&versioned)}) {
      const auto edits = edits_to_match(*form, known);
      if (!edits || *edits >= least) continue;
      least = *edits;
      nearest = route->path;
    }
  }
  if (nearest.empty()) return {};
  std::string methods;
  for (const auto& route : router.routes()) {
    if (route->path == nearest) methods += (methods.empty() ? "" : ", ") + route->method;
  }
  return "; did you mean '" + std::string(nearest) + "' (" + methods + ")?";
}

}  // namespace meshd::api
