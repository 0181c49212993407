// Which addresses requests of the server itself may go to. A client that names a URL must not reach through the server
// what only the server reaches: its own ports, the network behind it, the metadata service of a cloud (server-side
// request forgery). So an address has to be a public one, or in a network that the operator has allowed.
//
// The check is made of the address that is connected to, not of the name: a name may resolve to anything, and to
// something else a moment later.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sockaddr;

namespace meshd::outbound {

/// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2).
using Address = std::array<uint8_t, 16>;

/// "192.0.2.7", "2001:db8::1" (without brackets or zone). Nothing where it is no address.
std::optional<Address> parse_address(std::string_view text);
/// Nothing where it is neither IPv4 nor IPv6.
std::optional<Address> address_of(const sockaddr& socket_address);

/// The addresses that share their first `bits` bits.
struct Network {
  Address first{};
  int bits = 128;
  [[nodiscard]] bool contains(const Address& address) const;
};
/// "10.0.0.0/8", "fd00::/8", or an address alone. Nothing where it is neither.
std::optional<Network> parse_network(std::string_view text);

/// Immutable; any thread.
class AddressGuard {
 public:
  explicit AddressGuard(std::vector<Network> allowed = {}) : allowed_(std::move(allowed)) {}

  /// A globally reachable unicast address by IANA's registries of special-purpose addresses (RFC 6890), or in an
  /// allowed network. Addresses that contain an IPv4 address (mapped, NAT64, 6to4) are judged by that one as well.
  [[nodiscard]] bool allows(const Address& address) const;

 private:
  std::vector<Network> allowed_;
};

}  // namespace meshd::outbound
