#include "api/json/elide.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace meshd::api {
namespace {

/// Shorter strings are read as they come.
constexpr size_t kShortestString = 256;
/// Shorter lists are read as they come.
constexpr size_t kFewestNumbers = 8;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

const char* skip_space(const char* at, const char* end) {
  while (at < end && is_space(*at)) ++at;
  return at;
}

/// The end of the number at `at`; null when it is none, or none that JsonNumber surely holds.
const char* pass_number(const char* at, const char* end) {
  constexpr ptrdiff_t kSafeDigits = 18;    // of an int64_t
  constexpr ptrdiff_t kSafeMantissa = 40;  // with two digits of exponent far from the limits of a double
  const auto pass_digits = [end](const char* from) {
    while (from < end && is_digit(*from)) ++from;
    return from;
  };
  const char* const digits = at < end && *at == '-' ? at + 1 : at;
  const char* stop = pass_digits(digits);
  if (stop == digits || stop == end || (*digits == '0' && stop - digits > 1)) return nullptr;
  if (*stop != '.' && *stop != 'e' && *stop != 'E') return stop - digits <= kSafeDigits ? stop : nullptr;
  if (*stop == '.') {
    const char* const fraction = stop + 1;
    stop = pass_digits(fraction);
    if (stop == fraction) return nullptr;
  }
  bool is_safe = stop - digits <= kSafeMantissa;
  if (stop < end && (*stop == 'e' || *stop == 'E')) {
    const char* exponent = stop + 1;
    if (exponent < end && (*exponent == '+' || *exponent == '-')) ++exponent;
    stop = pass_digits(exponent);
    if (stop == exponent) return nullptr;
    is_safe = is_safe && stop - exponent <= 2;
  }
  double value = 0;
  return is_safe || std::from_chars(at, stop, value).ec == std::errc{} ? stop : nullptr;
}

/// Counts the numbers between a bracket and its end; returns the place of ']', or null.
const char* pass_list(const char* at, const char* end, int64_t most, size_t& count) {
  while (true) {
    at = pass_number(skip_space(at, end), end);
    if (at == nullptr || static_cast<int64_t>(count) >= most) return nullptr;
    ++count;
    at = skip_space(at, end);
    if (at == end) return nullptr;
    if (*at == ']') return count < kFewestNumbers ? nullptr : at;
    if (*at != ',') return nullptr;
    ++at;
  }
}

// Characters that a string may have between its quotes and that stand for themselves.
bool is_plain(char c) { return (c >= ' ') & (c <= '~') & (c != '"') & (c != '\\'); }

/// The first character from `at` on that is not plain.
const char* pass_plain(const char* at, const char* end) {
  constexpr ptrdiff_t kBlock = 64;  // without a branch inside: the compiler makes vectors of it
  for (; end - at >= kBlock; at += kBlock) {
    uint8_t other = 0;
    for (ptrdiff_t i = 0; i < kBlock; ++i) other |= static_cast<uint8_t>(!is_plain(at[i]));
    if (other != 0) break;
  }
  return std::find_if_not(at, end, is_plain);
}

/// The quote that ends the string whose inside begins at `at`, or the end; notes whether all before it is plain.
const char* pass_string(const char* at, const char* end, bool& plain) {
  at = pass_plain(at, end);
  plain = at < end && *at == '"';
  if (plain) return at;
  for (; at < end && *at != '"'; ++at) at += *at == '\\' ? 1 : 0;
  return std::min(at, end);
}

}  // namespace

size_t ElidedJson::original(size_t position) const {
  size_t out = position;
  for (const Cut& cut : cuts) {
    if (cut.begin > position) break;
    out += cut.removed;
  }
  return out;
}

ElidedJson elide_bulk_values(const std::shared_ptr<const std::string>& text, int64_t most, int64_t most_values,
                             const std::function<void(size_t)>& before_copy) {
  ElidedJson elided;
  const char* const begin = text->data();
  const char* const end = begin + text->size();
  const char* kept = begin;  // up to here the text is in `elided`
  size_t arrays = 0, strings = 0;
  // Leaves [from, to) out; false where too many values are left out already.
  const auto cut = [&](const char* from, const char* to) {
    if (--most_values < 0) return false;
    if (before_copy) before_copy(static_cast<size_t>(from - kept));
    elided.text.append(kept, static_cast<size_t>(from - kept));
    elided.cuts.push_back({elided.text.size(), static_cast<size_t>(to - from)});
    kept = to;
    return true;
  };
  for (const char* at = begin; at < end; ++at) {
    if (*at == '"') {
      const char* const inside = at + 1;
      const size_t string = strings++;
      bool plain = false;
      at = pass_string(inside, end, plain);
      const std::string_view value(inside, static_cast<size_t>(at - inside));
      if (!plain || value.size() < kShortestString) continue;
      if (!cut(inside, at)) break;
      elided.strings.push_back({string, value});
      continue;
    }
    if (*at != '[') continue;
    const size_t array = arrays++;
    size_t count = 0;
    const char* const stop = pass_list(at + 1, end, most, count);
    if (stop == nullptr) continue;
    const std::string_view inside(at + 1, static_cast<size_t>(stop - at - 1));
    if (!cut(at + 1, stop)) break;
    most -= static_cast<int64_t>(count);
    elided.lists.push_back({array, {text, inside, count}});
    at = stop;
  }
  if (elided.cuts.empty()) return elided;
  if (before_copy) before_copy(static_cast<size_t>(end - kept));
  elided.text.append(kept, static_cast<size_t>(end - kept));
  return elided;
}

}  // namespace meshd::api
