// Letters and spaces of ASCII, as the rules of header fields have them; names of types are compared so as well. Pure;
// any thread.
#pragma once

#include <string_view>

namespace meshd::core {

constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Without spaces and tabs at both ends.
constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace meshd::core
