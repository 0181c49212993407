// Texts of the server on a terminal: names, effects and errors may have any characters, and some of them would move the
// cursor, rename the window or answer in place of the person who reads.
#pragma once

#include <string>
#include <string_view>

namespace meshd::client {

/// The text with control characters written as \x1b, \u0085, ...; lines and tabs stay. UTF-8.
std::string terminal_text(std::string_view text);
/// The same where the descriptor is a terminal; else the text as it is.
std::string text_for(int descriptor, std::string_view text);

}  // namespace meshd::client
