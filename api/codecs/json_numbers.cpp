#include "api/codecs/json_numbers.h"

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

/// Reads one number; null when it is none, or none that fits.
const char* read_number(const char* at, const char* end, JsonNumber& out) {
  const char* digits = at < end && *at == '-' ? at + 1 : at;
  if (digits == end || !is_digit(*digits)) return nullptr;
  const char* stop = digits;
  while (stop < end && is_digit(*stop)) ++stop;
  if (*digits == '0' && stop - digits > 1) return nullptr;
  if (stop == end) return nullptr;
  if (*stop == '.' || *stop == 'e' || *stop == 'E') {
    if (*stop == '.' && (stop + 1 == end || !is_digit(stop[1]))) return nullptr;
    out.kind = JsonNumber::Kind::kFloat;
    const auto [read, error] = std::from_chars(at, end, out.f);
    return error == std::errc{} ? read : nullptr;
  }
  out.kind = JsonNumber::Kind::kSigned;
  const auto [read, error] = std::from_chars(at, end, out.i);
  return error == std::errc{} ? read : nullptr;
}

/// The numbers between a bracket and its end; returns the place of ']', or null.
const char* read_list(const char* at, const char* end, int64_t most, JsonNumbers& out) {
  while (true) {
    JsonNumber number;
    at = read_number(skip_space(at, end), end, number);
    if (at == nullptr || static_cast<int64_t>(out.size()) >= most) return nullptr;
    out.push_back(number);
    at = skip_space(at, end);
    if (at == end) return nullptr;
    if (*at == ']') return out.size() < kFewest ? nullptr : at;
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

size_t JsonNumbers::size() const {
  return std::visit([](const auto& values) { return values.size(); }, values_);
}

JsonNumber JsonNumbers::operator[](size_t i) const {
  if (const auto* mixed = std::get_if<std::vector<JsonNumber>>(&values_)) return (*mixed)[i];
  JsonNumber out;
  if (const auto* real = reals()) {
    out.kind = JsonNumber::Kind::kFloat;
    out.f = (*real)[i];
  } else {
    out.i = std::get<std::vector<int64_t>>(values_)[i];
  }
  return out;
}

void JsonNumbers::push_back(const JsonNumber& number) {
  if (size() == 0) {
    if (number.kind == JsonNumber::Kind::kFloat) values_ = std::vector<double>();
    if (number.kind == JsonNumber::Kind::kSigned) values_ = std::vector<int64_t>();
  }
  if (auto* real = std::get_if<std::vector<double>>(&values_);
      real != nullptr && number.kind == JsonNumber::Kind::kFloat) {
    return real->push_back(number.f);
  }
  if (auto* whole = std::get_if<std::vector<int64_t>>(&values_);
      whole != nullptr && number.kind == JsonNumber::Kind::kSigned) {
    return whole->push_back(number.i);
  }
  unpack();
  std::get<std::vector<JsonNumber>>(values_).push_back(number);
}

void JsonNumbers::unpack() {
  if (std::holds_alternative<std::vector<JsonNumber>>(values_)) return;
  std::vector<JsonNumber> all;
  all.reserve(size() * 2);
  for (size_t i = 0; i < size(); ++i) all.push_back((*this)[i]);
  values_ = std::move(all);
}

size_t ElidedJson::original(size_t position) const {
  size_t out = position;
  for (const List& list : lists) {
    if (list.begin > position) break;
    out += list.removed;
  }
  return out;
}

ElidedJson elide_numbers(std::string_view text, int64_t most) {
  ElidedJson elided;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* kept = begin;  // up to here the text is in `elided`
  size_t arrays = 0;
  for (const char* at = begin; at < end; ++at) {
    if (*at == '"') {
      for (++at; at < end && *at != '"'; ++at) at += *at == '\\' ? 1 : 0;
      continue;
    }
    if (*at != '[') continue;
    const size_t array = arrays++;
    JsonNumbers numbers;
    const char* const stop = read_list(at + 1, end, most, numbers);
    if (stop == nullptr) continue;
    most -= static_cast<int64_t>(numbers.size());
    elided.text.append(kept, static_cast<size_t>(at + 1 - kept));
    elided.lists.push_back({array, elided.text.size(), static_cast<size_t>(stop - at - 1), std::move(numbers)});
    kept = stop;
    at = stop;
  }
  if (!elided.lists.empty()) elided.text.append(kept, static_cast<size_t>(end - kept));
  return elided;
}

}  // namespace meshd::api
