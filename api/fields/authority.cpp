#include "api/fields/authority.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "api/http/characters.h"

namespace meshd::api {
namespace {

constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;

/// `text` as an address of `family`, in `out` as bytes.
bool read_address(int family, std::string_view text, void* out) {
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size() || text.find('\0') != std::string_view::npos) return false;
  std::copy(text.begin(), text.end(), terminated.begin());
  return inet_pton(family, terminated.data(), out) == 1;
}

std::string write_address(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(family, bytes, text.data(), text.size()) == nullptr ? std::string() : std::string(text.data());
}

bool read_name(std::string_view text, std::string& out) {
  if (text.ends_with('.')) text.remove_suffix(1);  // the root: the same name, written in full
  if (text.empty() || text.front() == '.' || text.back() == '.' || text.find("..") != std::string_view::npos)
    return false;
  constexpr std::string_view kMarks = "-._~!$&'()*+,;=%";
  for (const char c : text) {
    if (!is_alphanumeric(c) && kMarks.find(c) == std::string_view::npos) return false;
    out.push_back(to_lower(c));
  }
  return true;
}

bool read_port(std::string_view text, std::optional<uint16_t>& out) {
  if (text.empty()) return true;  // "host:" is "host"
  uint16_t port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failure != std::errc() || end != text.data() + text.size()) return false;
  out = port;
  return true;
}

}  // namespace

bool Authority::is_loopback() const {
  switch (kind) {
    case Kind::kName:
      return host == "localhost" || host.ends_with(".localhost");
    case Kind::kIpv4:
      return host.starts_with("127.");
    case Kind::kIpv6:
      return host == "::1";
  }
  return false;
}

bool Authority::is_unspecified() const { return is_address() && (host == "0.0.0.0" || host == "::"); }

std::optional<Authority> parse_address(std::string_view text) {
  Authority out;
  in_addr four{};
  if (read_address(AF_INET, text, &four)) {
    out.kind = Authority::Kind::kIpv4;
    out.host = text;  // there is one way to write it: four decimal numbers without zeros before them
    return out;
  }
  in6_addr six{};
  if (!read_address(AF_INET6, text, &six)) return std::nullopt;
  if (IN6_IS_ADDR_V4MAPPED(&six)) {
    constexpr size_t kFourAt = 12;
    out.kind = Authority::Kind::kIpv4;
    out.host = write_address(AF_INET, six.s6_addr + kFourAt);
    return out;
  }
  out.kind = Authority::Kind::kIpv6;
  out.host = write_address(AF_INET6, &six);
  return out;
}

std::optional<Authority> parse_authority(std::string_view text) {
  std::optional<Authority> out;
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text.substr(1, close - 1);
    if (inside.find(':') != std::string_view::npos) out = parse_address(inside);
    rest = text.substr(close + 1);
    if (!out || (!rest.empty() && rest.front() != ':')) return std::nullopt;
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    out = parse_address(text.substr(0, colon));
    if (!out) out.emplace();
    if (!out->is_address() && !read_name(text.substr(0, colon), out->host)) return std::nullopt;
    rest = text.substr(colon);
  }
  if (!rest.empty() && !read_port(rest.substr(1), out->port)) return std::nullopt;
  return out;
}

uint16_t Origin::effective_port() const {
  if (authority.port) return *authority.port;
  return scheme == "http" ? kHttpPort : scheme == "https" ? kHttpsPort : uint16_t{0};
}

std::optional<Origin> parse_origin(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  Origin out;
  for (const char c : text.substr(0, colon)) {
    if (!is_alphanumeric(c) && c != '+' && c != '-' && c != '.') return std::nullopt;
    out.scheme.push_back(to_lower(c));
  }
  std::optional<Authority> authority = parse_authority(text.substr(colon + 3));
  if (!authority) return std::nullopt;
  out.authority = std::move(*authority);
  return out;
}

}  // namespace meshd::api
