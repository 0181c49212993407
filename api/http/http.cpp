#include "api/http/http.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "api/http/characters.h"
#include "api/http/events.h"
#include "service/core/error.h"
#include "service/core/near_names.h"

namespace meshd::api {

namespace {

std::string with_newline(std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

}  // namespace

void Headers::add(std::string_view name, std::string_view value) {
  if (!is_token(name) || !is_field_value(value)) {
    throw core::Error("internal", "an answer's header could not be written")
        .with_internal("header '" + std::string(name) + "' holds bytes that no field may have");
  }
  fields_.emplace_back(name, value);
}

void Headers::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return equal_ignoring_case(field.first, name); });
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (equal_ignoring_case(field.first, name)) return field.second;
  }
  return std::nullopt;
}

std::string Headers::joined(std::string_view name) const {
  std::string out;
  for (const Field& field : fields_) {
    if (!equal_ignoring_case(field.first, name)) continue;
    if (!out.empty()) out += ", ";
    out += field.second;
  }
  return out;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      throw core::Error("malformed_request", "a '%' in the request target is not followed by two hex digits");
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (out.find('\0') != std::string::npos || !is_utf8(out)) {
    throw core::Error("malformed_request", "the request target, decoded, is not UTF-8 text without NUL");
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

Query Query::parse(std::string_view raw) {
  Query query;
  const auto decode = [](std::string_view part) {
    std::string spaced(part);
    std::replace(spaced.begin(), spaced.end(), '+', ' ');
    return percent_decode(spaced);
  };
  while (!raw.empty()) {
    const size_t end = std::min(raw.find('&'), raw.size());
    const std::string_view item = raw.substr(0, end);
    raw.remove_prefix(std::min(end + 1, raw.size()));
    if (item.empty()) continue;
    const size_t equals = std::min(item.find('='), item.size());
    query.parameters_.emplace_back(decode(item.substr(0, equals)),
                                   decode(item.substr(std::min(equals + 1, item.size()))));
  }
  return query;
}

bool Query::has(std::string_view name) const {
  return std::any_of(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.first == name; });
}

std::optional<std::string_view> Query::get(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const Parameter& parameter : parameters_) {
    if (parameter.first != name) continue;
    if (found) throw core::Error("invalid_query", "parameter '" + std::string(name) + "' is given more than once");
    found = parameter.second;
  }
  return found;
}

std::vector<std::string_view> Query::all(std::string_view name) const {
  std::vector<std::string_view> out;
  for (const Parameter& parameter : parameters_) {
    if (parameter.first == name) out.emplace_back(parameter.second);
  }
  return out;
}

std::optional<std::string> Query::take(std::string_view name) {
  const std::optional<std::string_view> found = get(name);
  if (!found) return std::nullopt;
  std::string value(*found);
  std::erase_if(parameters_, [&](const Parameter& parameter) { return parameter.first == name; });
  return value;
}

void Query::require_known(std::span<const std::string_view> known) const {
  core::Diagnostics wrong;
  for (const Parameter& parameter : parameters_) {
    if (std::find(known.begin(), known.end(), parameter.first) != known.end()) continue;
    std::string detail = "unknown query parameter '" + parameter.first + "'";
    if (known.empty()) detail += ", this operation takes none";
    for (size_t i = 0; i < known.size(); ++i) detail += (i == 0 ? ", known are '" : "', '") + std::string(known[i]);
    if (!known.empty()) detail += "'" + core::did_you_mean(parameter.first, known);
    wrong.add({}, std::move(detail));
  }
  wrong.throw_if_any("invalid_query");
}

int64_t Query::integer(std::string_view name, int64_t missing, int64_t low, int64_t high) const {
  const std::optional<std::string_view> value = get(name);
  if (!value) return missing;
  int64_t out = 0;
  const auto [end, failure] = std::from_chars(value->data(), value->data() + value->size(), out);
  if (failure != std::errc() || end != value->data() + value->size() || out < low || out > high) {
    throw core::Error("invalid_query", fmt::format("parameter '{}' must be an integer from {} to {}, got '{}'", name,
                                                   low, high, *value));
  }
  return out;
}

const std::string& Request::capture(std::string_view name) const {
  for (const auto& [key, value] : captures) {
    if (key == name) return value;
  }
  throw core::Error("internal", "something went wrong on our side")
      .with_internal("the route's template has no '" + std::string(name) + "'");
}

Response json(int status, std::string text) {
  return content(status, "application/json", with_newline(std::move(text)));
}

Response text(int status, std::string text) {
  return content(status, "text/plain; charset=utf-8", with_newline(std::move(text)));
}

Response content(int status, std::string_view media_type, std::string bytes) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", media_type);
  response.body = std::move(bytes);
  return response;
}

Response no_content() {
  Response response;
  response.status = 204;
  return response;
}

Response memory(int status, std::string_view media_type, MemoryPieces pieces) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", media_type);
  response.body = std::move(pieces);
  return response;
}

Response generated(int status, std::string_view media_type, BodySource source) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", media_type);
  response.body = std::move(source);
  return response;
}

Response events(std::shared_ptr<EventStream> stream) {
  Response response;
  response.headers.add("Content-Type", "text/event-stream");
  response.headers.add("Cache-Control", "no-store");
  response.body = std::move(stream);
  return response;
}

std::optional<int64_t> body_size(const Response& response) {
  if (const auto* bytes = std::get_if<std::string>(&response.body)) return static_cast<int64_t>(bytes->size());
  if (const auto* pieces = std::get_if<MemoryPieces>(&response.body)) {
    int64_t total = 0;
    for (const auto& piece : pieces->pieces) total += static_cast<int64_t>(piece.size());
    return total;
  }
  if (const auto* source = std::get_if<BodySource>(&response.body)) return source->length;
  return std::nullopt;
}

}  // namespace meshd::api
