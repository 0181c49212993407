// Character classes of RFC 9110 and small text rules that the head reader, headers and queries share. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "service/core/ascii.h"

namespace meshd::api {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_alphanumeric(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
using core::to_lower;

/// 0..15, or -1.
constexpr int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// RFC 9110 5.6.2: tchar.
constexpr bool is_token_character(char c) {
  return is_alphanumeric(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

constexpr bool is_token(std::string_view text) {
  for (const char c : text) {
    if (!is_token_character(c)) return false;
  }
  return !text.empty();
}

/// 1 to `longest` of A-Z a-z 0-9 . _ -
constexpr bool is_plain_name(std::string_view text, size_t longest) {
  for (const char c : text) {
    if (!is_alphanumeric(c) && c != '.' && c != '_' && c != '-') return false;
  }
  return !text.empty() && text.size() <= longest;
}

/// RFC 9110 5.5: visible bytes, space, tab and obs-text; no control bytes.
constexpr bool is_field_value(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) return false;
  }
  return true;
}

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

using core::trim;

/// Takes the next element of a comma list off the front of `list`, trimmed; false when the list is used up. Empty
/// elements are skipped, as RFC 9110 5.6.1 requires.
constexpr bool next_list_element(std::string_view& list, std::string_view& element) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    element = trim(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    if (!element.empty()) return true;
  }
  return false;
}

/// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
constexpr bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int extra = lead < 0x80                   ? 0
                      : lead >= 0xc2 && lead < 0xe0 ? 1
                      : (lead & 0xf0) == 0xe0       ? 2
                      : lead >= 0xf0 && lead < 0xf5 ? 3
                                                    : -1;
    if (extra < 0 || text.size() - i <= static_cast<size_t>(extra)) return false;
    unsigned code = extra == 0 ? lead : lead & (0x3fU >> extra);
    for (int k = 1; k <= extra; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<size_t>(k)]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3fU);
    }
    if (extra == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) return false;
    if (extra == 3 && (code < 0x10000 || code > 0x10ffff)) return false;
    i += static_cast<size_t>(extra) + 1;
  }
  return true;
}

}  // namespace meshd::api
