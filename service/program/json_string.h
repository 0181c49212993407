// Strings in the JSON text of trees of arguments and results, which artifacts and programs in NumPy syntax have.
#pragma once

#include <string>
#include <string_view>

namespace meshd::program {

/// In quotes; `"`, `\` and control characters escaped.
inline std::string json_string(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      out.append("\\u00").append({kDigits[byte >> 4], kDigits[byte & 15]});
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace meshd::program
