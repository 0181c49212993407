#include "api/json/json_numbers.h"

#include <charconv>

namespace meshd::api {
namespace {

const char* pass_space(const char* at, const char* end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
  return at;
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
  at = pass_space(at, end);
  out.kind = JsonNumber::Kind::kSigned;
  const char* stop = std::from_chars(at, end, out.i).ptr;
  if (*stop == '.' || *stop == 'e' || *stop == 'E') {
    out.kind = JsonNumber::Kind::kFloat;
    stop = std::from_chars(at, end, out.f).ptr;
  }
  stop = pass_space(stop, end);
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

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace meshd::api
