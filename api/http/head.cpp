#include "api/http/head.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "api/http/characters.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr size_t kMethodBytes = 32;

[[noreturn]] void malformed_head(std::string detail) { throw core::Error("malformed_request", std::move(detail)); }

/// Takes one line, without its CRLF, off the front. The scanner has made sure that every LF follows a CR.
std::string_view next_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end - 1);
  rest.remove_prefix(end + 1);
  return line;
}

/// host [":" port] of RFC 3986, without user information.
bool is_authority(std::string_view text) {
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos || close < 3) return false;
    for (const char c : text.substr(1, close - 1)) {
      if (hex_digit(c) < 0 && c != ':' && c != '.') return false;
    }
    port = text.substr(close + 1);
    if (!port.empty() && !port.starts_with(':')) return false;
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    if (colon == 0) return false;
    for (const char c : text.substr(0, colon)) {
      if (!is_alphanumeric(c) && std::string_view("-._~!$&'()*+,;=%").find(c) == std::string_view::npos) return false;
    }
    port = text.substr(colon);
  }
  if (port.empty()) return true;
  port.remove_prefix(1);
  return port.size() <= 5 && std::all_of(port.begin(), port.end(), is_digit);
}

void read_version(std::string_view text, Head& head) {
  const bool formed =
      text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) && text[6] == '.' && is_digit(text[7]);
  if (!formed) malformed_head("the request line does not end in 'HTTP/1.1' or 'HTTP/1.0'");
  if (text[5] != '1')
    throw core::Error("http_version", "HTTP/1.1 and HTTP/1.0 are spoken here, got " + std::string(text));
  head.minor_version = text[7] == '0' ? 0 : 1;
}

/// The forms of RFC 9112 3.2. `authority` is set for the absolute form.
void read_target(std::string_view target, Head& head, std::string_view& authority) {
  for (const char c : target) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '#')
      malformed_head("the request target has a byte that must be percent-encoded");
  }
  head.target = target;
  if (target == "*") {
    if (head.method != "OPTIONS") malformed_head("the target '*' goes with OPTIONS only");
    head.path = target;
    return;
  }
  if (head.method == "CONNECT") malformed_head("this is not a proxy: CONNECT has no target here");
  if (!target.starts_with('/')) {
    const size_t scheme = target.find("://");
    const std::string_view name = target.substr(0, std::min(scheme, target.size()));
    if (scheme == std::string_view::npos ||
        (!equal_ignoring_case(name, "http") && !equal_ignoring_case(name, "https"))) {
      malformed_head("the request target must start with '/'");
    }
    target.remove_prefix(scheme + 3);
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    authority = target.substr(0, end);
    if (!is_authority(authority)) malformed_head("the host in the request target is not a host");
    target.remove_prefix(end);
  }
  const size_t question_mark = std::min(target.find('?'), target.size());
  head.path = target.substr(0, question_mark);
  if (head.path.empty()) head.path = "/";
  head.raw_query = target.substr(std::min(question_mark + 1, target.size()));
}

void read_request_line(std::string_view line, const HeadLimits& limits, Head& head, std::string_view& authority) {
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) malformed_head("the request line is not 'METHOD target HTTP/1.1'");
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  if (!is_token(method) || method.size() > kMethodBytes) malformed_head("the method is not a short token");
  if (target.empty()) malformed_head("the request line has no target, or two spaces in a row");
  head.method = method;
  read_version(line.substr(second + 1), head);
  if (target.size() > limits.target_bytes) {
    throw core::Error("uri_too_long", fmt::format("the request target has {} bytes, at most {} are taken",
                                                  target.size(), limits.target_bytes));
  }
  read_target(target, head, authority);
}

void read_field(std::string_view line, Head& head) {
  if (line.front() == ' ' || line.front() == '\t')
    malformed_head("a header line starts with a space: folded lines are not taken");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) malformed_head("a header line has no ':'");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) malformed_head("a header's name is not a token directly followed by ':'");
  const std::string_view value = trim(line.substr(colon + 1));
  if (!is_field_value(value)) malformed_head("header '" + std::string(name) + "' holds a control byte");
  if (name.find('_') == std::string_view::npos) head.headers.add(name, value);
}

int64_t read_content_length(std::string_view text) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  if (!digits || failure != std::errc() || end != text.data() + text.size()) {
    malformed_head("Content-Length must be one decimal number of bytes");
  }
  return value;
}

void read_framing(Head& head) {
  std::optional<std::string_view> length;
  std::optional<std::string_view> coding;
  for (const auto& [name, value] : head.headers.fields()) {
    if (equal_ignoring_case(name, "Content-Length")) {
      if (length) malformed_head("Content-Length is given more than once");
      length = value;
    } else if (equal_ignoring_case(name, "Transfer-Encoding")) {
      if (coding) malformed_head("Transfer-Encoding is given more than once");
      coding = value;
    }
  }
  if (length && coding) malformed_head("Content-Length and Transfer-Encoding exclude each other");
  if (coding) {
    if (head.minor_version == 0) malformed_head("HTTP/1.0 has no Transfer-Encoding");
    if (!equal_ignoring_case(*coding, "chunked")) malformed_head("the only Transfer-Encoding taken is 'chunked'");
    head.framing = Framing::kChunked;
  } else if (length) {
    head.content_length = read_content_length(*length);
    head.framing = head.content_length > 0 ? Framing::kLength : Framing::kNone;
  }
}

void read_host(Head& head, std::string_view authority) {
  const std::string* host = nullptr;
  for (const auto& [name, value] : head.headers.fields()) {
    if (!equal_ignoring_case(name, "Host")) continue;
    if (host != nullptr) malformed_head("Host is given more than once");
    host = &value;
  }
  if (host == nullptr) {
    // Old balancers probe with HTTP/1.0 and no Host.
    if (head.minor_version > 0) malformed_head("HTTP/1.1 needs a Host header");
    head.authority = authority;
    return;
  }
  if (!is_authority(*host)) malformed_head("Host is not 'name' or 'name:port'");
  if (!authority.empty() && !equal_ignoring_case(authority, *host))
    malformed_head("Host is not the host of the request target");
  head.authority = *host;
}

void read_connection(Head& head) {
  bool close = false;
  bool keep = false;
  for (const auto& [name, value] : head.headers.fields()) {
    if (!equal_ignoring_case(name, "Connection")) continue;
    std::string_view list = value;
    for (std::string_view option; next_list_element(list, option);) {
      if (!is_token(option)) malformed_head("Connection is not a list of tokens");
      close = close || equal_ignoring_case(option, "close");
      keep = keep || equal_ignoring_case(option, "keep-alive");
    }
  }
  head.keep_alive = !close && (head.minor_version > 0 || keep);
}

void read_expect(Head& head) {
  const std::string expect = head.headers.joined("Expect");
  if (expect.empty()) return;
  if (!equal_ignoring_case(expect, "100-continue")) {
    throw core::Error("expectation_failed", "the only expectation known is '100-continue'");
  }
  head.expect_continue = head.minor_version > 0 && head.framing != Framing::kNone;
}

}  // namespace

std::optional<size_t> HeadScanner::find_end(std::string_view bytes) {
  if (scanned_ == 0 && !bytes.empty()) {
    // RFC 9112 2.2: one empty line before a request is forgiven. TLS hellos and other noise end here.
    if (bytes[0] != '\r' && !is_token_character(bytes[0]))
      malformed_head("this is not the start of an HTTP/1.1 request");
  }
  while (scanned_ < bytes.size()) {
    const size_t end = bytes.find('\n', scanned_);
    if (end == std::string_view::npos) {
      scanned_ = bytes.size();
      break;
    }
    scanned_ = end + 1;
    if (end == line_start_ || bytes[end - 1] != '\r') malformed_head("a line ends in LF without CR");
    const size_t line_bytes = end - 1 - line_start_;
    const bool leading = line_start_ == 0 && line_bytes == 0;
    line_start_ = end + 1;
    if (leading) continue;
    if (line_bytes == 0) {
      if (lines_ == 0) malformed_head("two empty lines where a request should start");
      if (line_start_ > limits_.bytes) break;
      return line_start_;
    }
    // The request line and then one field a line.
    if (++lines_ > limits_.fields + 1) {
      throw core::Error("head_too_large", fmt::format("more than {} header fields", limits_.fields));
    }
  }
  if (lines_ == 0 && bytes.size() > limits_.target_bytes + kMethodBytes + 16) {
    throw core::Error("uri_too_long", fmt::format("the request line is longer than {} bytes", limits_.target_bytes));
  }
  if (bytes.size() >= limits_.bytes) {
    throw core::Error("head_too_large", fmt::format("the request head is larger than {} bytes", limits_.bytes));
  }
  return std::nullopt;
}

Head parse_head(std::string_view bytes, const HeadLimits& limits) {
  Head head;
  std::string_view authority;
  std::string_view rest = bytes;
  std::string_view line = next_line(rest);
  if (line.empty()) line = next_line(rest);
  if (line.find('\r') != std::string_view::npos) malformed_head("the request line has a CR inside");
  read_request_line(line, limits, head, authority);
  for (line = next_line(rest); !line.empty(); line = next_line(rest)) read_field(line, head);
  read_host(head, authority);
  read_framing(head);
  read_connection(head);
  read_expect(head);
  return head;
}

}  // namespace meshd::api
