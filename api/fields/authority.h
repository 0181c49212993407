// Hosts and origins (RFC 3986 3.2, RFC 6454) in normal form, for comparison: Host, Origin, and what an operator lists.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace meshd::api {

/// host [":" port]. "Example.ORG.:80" is {kName, "example.org", 80}; "[::1]" is {kIpv6, "::1", nothing};
/// "[::ffff:127.0.0.1]" is {kIpv4, "127.0.0.1", nothing}. Numbers that some resolvers take for addresses ("127.1",
/// "2130706433", "0x7f.0.0.1") are names here: browsers never send them as a host.
struct Authority {
  enum class Kind : uint8_t { kName, kIpv4, kIpv6 };
  Kind kind = Kind::kName;
  std::string host;  ///< a name in lower case, without a dot at its end; an address as the system writes it
  std::optional<uint16_t> port;

  [[nodiscard]] bool is_address() const { return kind != Kind::kName; }
  /// localhost and names under it (which browsers never resolve by DNS, RFC 6761), 127.0.0.0/8, ::1.
  [[nodiscard]] bool is_loopback() const;
  /// 0.0.0.0 or ::, which listen on all addresses of the machine.
  [[nodiscard]] bool is_unspecified() const;
};

/// Nothing when `text` is no host with or without a port: user information, a path, an empty name or label.
std::optional<Authority> parse_authority(std::string_view text);

/// The same of an address as a socket has it: "127.0.0.1", "::1" (no brackets).
std::optional<Authority> parse_address(std::string_view text);

/// scheme "://" host [":" port], without anything behind. "null" is none.
struct Origin {
  std::string scheme;  ///< in lower case
  Authority authority;

  /// The port of the origin: 80 for http and 443 for https where it names none, else 0.
  [[nodiscard]] uint16_t effective_port() const;
  friend bool operator==(const Origin& a, const Origin& b) {
    return a.scheme == b.scheme && a.authority.host == b.authority.host && a.effective_port() == b.effective_port();
  }
};

std::optional<Origin> parse_origin(std::string_view text);

}  // namespace meshd::api
