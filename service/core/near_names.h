// Names that may have been meant where one is not known: "did you mean".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace meshd::core {

/// How many insertions, deletions, replacements and swaps of neighbours make one name the other (optimal string
/// alignment). Quadratic in their lengths.
size_t edit_distance(std::string_view a, std::string_view b);

/// A name is near with fewer edits than this, by its length: 2 for up to four characters ("sm" is near "sum", and
/// "fooo" is not near "bool"), 3 for up to eleven, then 4. Nothing is near names of more than 64 characters.
constexpr size_t edit_limit(std::string_view given) {
  if (given.size() > 64) return 0;
  return given.size() <= 4 ? 2 : given.size() <= 11 ? 3 : 4;
}

/// The nearest name in `known`, a range of what converts to std::string_view, with fewer than `limit` edits; empty
/// where there is none. Of equally near names the first that is as long as the given one, else the first: "tahn" is
/// "tanh" with two letters swapped rather than "tan" with one too many. Names of another length than `limit` allows are
/// passed over without a look.
template <typename Known>
std::string_view nearest_name(std::string_view given, const Known& known, size_t limit) {
  std::string_view nearest;
  for (const auto& each : known) {
    const std::string_view name(each);
    if (given.size() >= name.size() + limit || name.size() >= given.size() + limit) continue;
    const size_t edits = edit_distance(given, name);
    const bool is_longer_or_shorter = !nearest.empty() && nearest.size() != given.size();
    if (edits > limit || (edits == limit && !(is_longer_or_shorter && name.size() == given.size()))) continue;
    limit = edits;
    nearest = name;
  }
  return nearest;
}
template <typename Known>
std::string_view nearest_name(std::string_view given, const Known& known) {
  return nearest_name(given, known, edit_limit(given));
}

/// "; did you mean 'sum'?", the end of a message; empty where `name` is. Messages about JSON quote as JSON does.
std::string did_you_mean(std::string_view name, char quote = '\'');
/// The same of the nearest of `known`.
template <typename Known>
std::string did_you_mean(std::string_view given, const Known& known, char quote = '\'') {
  return did_you_mean(nearest_name(given, known), quote);
}

}  // namespace meshd::core
