// Names that may have been meant where one is not known: "did you mean".
#pragma once

#include <cstddef>
#include <string_view>

namespace meshd::core {

/// How many insertions, deletions and replacements of characters make one name the other. Quadratic in their lengths.
size_t edit_distance(std::string_view a, std::string_view b);

/// The first of the nearest names in `known`, a range of what converts to std::string_view, with fewer than `limit`
/// edits; empty where there is none. Names of another length than that are passed over without a look.
template <typename Known>
std::string_view nearest_name(std::string_view given, const Known& known, size_t limit) {
  std::string_view nearest;
  for (const auto& each : known) {
    const std::string_view name(each);
    if (given.size() >= name.size() + limit || name.size() >= given.size() + limit) continue;
    const size_t edits = edit_distance(given, name);
    if (edits >= limit) continue;
    limit = edits;
    nearest = name;
  }
  return nearest;
}

}  // namespace meshd::core
