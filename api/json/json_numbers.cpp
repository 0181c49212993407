#include "api/json/json_numbers.h"

#include <charconv>

namespace meshd::api {
namespace {

/// Shorter lists are read as they come.
constexpr size_t kFewest = 8;

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
    if (*at == ']') return count < kFewest ? nullptr : at;
    if (*at != ',') return nullptr;
    ++at;
  }
}

}  // namespace

double JsonNumber::as_double() const {
  switch (kind) {
    case Kind::kSigned:
      return static_cast<double>(i);
    case Kind::kUnsigned:
      return static_cast<double>(u);
    case Kind::kFloat:
      return f;
  }
  return 0;
}

const char* read_number(const char* at, const char* end, JsonNumber& out) {
  at = skip_space(at, end);
  out.kind = JsonNumber::Kind::kSigned;
  const char* stop = std::from_chars(at, end, out.i).ptr;
  if (*stop == '.' || *stop == 'e' || *stop == 'E') {
    out.kind = JsonNumber::Kind::kFloat;
    stop = std::from_chars(at, end, out.f).ptr;
  }
  stop = skip_space(stop, end);
  return *stop == ',' ? stop + 1 : stop;
}

JsonNumber JsonNumbers::operator[](size_t i) const {
  JsonNumber out;
  each([&](size_t at, const JsonNumber& number) {
    out = number;
    return at < i;
  });
  return out;
}

size_t ElidedJson::original(size_t position) const {
  size_t out = position;
  for (const List& list : lists) {
    if (list.begin > position) break;
    out += list.removed;
  }
  return out;
}

ElidedJson elide_numbers(const std::shared_ptr<const std::string>& text, int64_t most, int64_t most_lists,
                         const std::function<void(size_t)>& before_copy) {
  ElidedJson elided;
  const char* const begin = text->data();
  const char* const end = begin + text->size();
  const char* kept = begin;  // up to here the text is in `elided`
  size_t arrays = 0;
  for (const char* at = begin; at < end; ++at) {
    if (*at == '"') {
      for (++at; at < end && *at != '"'; ++at) at += *at == '\\' ? 1 : 0;
      continue;
    }
    if (*at != '[') continue;
    const size_t array = arrays++;
    size_t count = 0;
    const char* const stop = pass_list(at + 1, end, most, count);
    if (stop == nullptr) continue;
    if (--most_lists < 0) break;
    if (before_copy) before_copy(static_cast<size_t>(at + 1 - kept));
    most -= static_cast<int64_t>(count);
    const std::string_view inside(at + 1, static_cast<size_t>(stop - at - 1));
    elided.text.append(kept, static_cast<size_t>(at + 1 - kept));
    elided.lists.push_back({array, elided.text.size(), inside.size(), {text, inside, count}});
    kept = stop;
    at = stop;
  }
  if (elided.lists.empty()) return elided;
  if (before_copy) before_copy(static_cast<size_t>(end - kept));
  elided.text.append(kept, static_cast<size_t>(end - kept));
  return elided;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace meshd::api
