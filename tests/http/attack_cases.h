// The attack list: bytes that a hostile or broken client sends, and what must come back. Made from RFC 9110 and 9112
// and from what was found in HTTP libraries (smuggling, bombs, splitting, leaking ranges). The targets are the toy
// routes.
#pragma once

#include <string>
#include <vector>

namespace meshd::http_test {

/// What the connection does after the last answer.
enum class After {
  kKeeps,   ///< takes another request
  kCloses,  ///< ends
};

struct AttackCase {
  std::string name;
  std::string bytes;
  std::vector<int> statuses;  ///< of all answers, in order; empty: closed without a word
  After after = After::kCloses;
};

/// No case may make the server run a request for this target: where it stands, it stands inside of something else.
inline constexpr const char* kSmuggled = "/things/smuggled";

std::vector<AttackCase> attack_cases();

}  // namespace meshd::http_test
