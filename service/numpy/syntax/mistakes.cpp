#include "service/numpy/syntax/mistakes.h"

#include <algorithm>

#include "service/core/near_names.h"

namespace meshd::numpy {
namespace {

constexpr size_t kLongestCompared = 40;

}  // namespace

void fail(core::ErrorCode code, Place place, const std::string& message) {
  const std::string detail =
      "line " + std::to_string(place.line) + ", column " + std::to_string(place.column) + ": " + message;
  throw core::Error(code, detail, {{"", message, place.line, place.column}});
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  if (name.size() > kLongestCompared) return "";
  const size_t limit = name.size() <= 3 ? 2 : 3;
  const std::string_view nearest = core::nearest_name(name, known, limit);
  return nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace meshd::numpy
