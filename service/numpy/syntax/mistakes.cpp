#include "service/numpy/syntax/mistakes.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace meshd::numpy {
namespace {

constexpr size_t kLongestCompared = 40;

// Insertions, deletions, replacements and swaps of neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::vector<size_t> next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j + 1] + 1, next[j] + 1, row[j] + (a[i] == b[j] ? 0U : 1U)});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

}  // namespace

void fail(core::ErrorCode code, Place place, const std::string& message) {
  const std::string detail =
      "line " + std::to_string(place.line) + ", column " + std::to_string(place.column) + ": " + message;
  throw core::Error(code, detail, {{"/program/text", message, place.line, place.column}});
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  if (name.size() > kLongestCompared) return "";
  const std::string* best = nullptr;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongestCompared) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : "; did you mean '" + *best + "'?";
}

}  // namespace meshd::numpy
