#include "api/client/text/terminal_text.h"

#include <fmt/core.h>
#include <unistd.h>

namespace meshd::client {

std::string terminal_text(std::string_view text) {
  constexpr unsigned char kC1Lead = 0xc2, kC1First = 0x80, kC1Last = 0x9f;  // of U+0080 to U+009F in UTF-8
  constexpr char kDelete = 0x7f;
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    const bool is_control = (c >= '\0' && c < ' ' && c != '\n' && c != '\t') || c == kDelete;
    if (is_control) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else if (static_cast<unsigned char>(c) == kC1Lead && next >= kC1First && next <= kC1Last) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string text_for(int descriptor, std::string_view text) {
  return ::isatty(descriptor) != 0 ? terminal_text(text) : std::string(text);
}

}  // namespace meshd::client
