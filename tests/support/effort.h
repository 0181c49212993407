// How much a test of chance does: a little in ./dev test, more in ./dev check-long, most with LONG=1 before a release.
#pragma once

#include <cstdlib>
#include <string_view>

namespace meshd::testing {

/// The one of three counts that the environment asks for: MESHD_LONG is set by ./dev check-long, LONG=1 by the person.
inline int by_effort(int usual, int longer, int longest) {
  const char* const most = std::getenv("LONG");
  if (most != nullptr && std::string_view(most) == "1") return longest;
  return std::getenv("MESHD_LONG") != nullptr ? longer : usual;
}

}  // namespace meshd::testing
