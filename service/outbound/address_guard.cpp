#include "service/outbound/address_guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace meshd::outbound {
namespace {

constexpr int kMappedBits = 96;
constexpr Address kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

Address mapped(const void* ipv4) {
  Address out = kMapped;
  std::memcpy(out.data() + 12, ipv4, 4);
  return out;
}

bool is_ipv4(const Address& address) { return std::equal(kMapped.begin(), kMapped.begin() + 12, address.begin()); }

// IANA's registries of special-purpose addresses, those that are not globally reachable; multicast; and what is in no
// use. IPv6 is unicast and global within 2000::/3 alone.
constexpr std::string_view kSpecial[] = {
    "0.0.0.0/8",      "10.0.0.0/8",   "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24",   "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",  "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4",  "240.0.0.0/4",    "2001:0000::/23", "2001:db8::/32",  "3fff::/20"};
constexpr std::string_view kGlobalUnicast = "2000::/3";
// Networks of IPv6 whose addresses have an IPv4 address at this byte: NAT64 (RFC 6052) and 6to4 (RFC 3056).
struct Embedding {
  std::string_view network;
  size_t at;
};
constexpr Embedding kEmbeddings[] = {{"64:ff9b::/96", 12}, {"2002::/16", 2}};

bool is_in(std::string_view network, const Address& address) { return parse_network(network)->contains(address); }

bool is_public(const Address& address) {
  for (const Embedding& embedding : kEmbeddings) {
    if (is_in(embedding.network, address)) return is_public(mapped(address.data() + embedding.at));
  }
  if (!is_ipv4(address) && !is_in(kGlobalUnicast, address)) return false;
  return std::none_of(std::begin(kSpecial), std::end(kSpecial),
                      [&](std::string_view network) { return is_in(network, address); });
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  const std::string copy(text);
  in_addr ipv4{};
  if (inet_pton(AF_INET, copy.c_str(), &ipv4) == 1) return mapped(&ipv4);
  Address out;
  if (inet_pton(AF_INET6, copy.c_str(), out.data()) == 1) return out;
  return std::nullopt;
}

std::optional<Address> address_of(const sockaddr& socket_address) {
  if (socket_address.sa_family == AF_INET)
    return mapped(&reinterpret_cast<const sockaddr_in&>(socket_address).sin_addr);
  if (socket_address.sa_family != AF_INET6) return std::nullopt;
  Address out;
  std::memcpy(out.data(), &reinterpret_cast<const sockaddr_in6&>(socket_address).sin6_addr, out.size());
  return out;
}

bool Network::contains(const Address& address) const {
  const auto whole = static_cast<size_t>(bits / 8);
  if (!std::equal(first.begin(), first.begin() + static_cast<ptrdiff_t>(whole), address.begin())) return false;
  if (bits % 8 == 0) return true;
  const int rest = 8 - bits % 8;
  return first[whole] >> rest == address[whole] >> rest;
}

std::optional<Network> parse_network(std::string_view text) {
  const size_t slash = text.find('/');
  const auto first = parse_address(text.substr(0, slash));
  if (!first) return std::nullopt;
  if (slash == std::string_view::npos) return Network{*first, 128};
  const std::string_view digits = text.substr(slash + 1);
  int bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  const int before = text.find(':') == std::string_view::npos ? kMappedBits : 0;
  if (error != std::errc() || end != digits.data() + digits.size() || bits < 0 || before + bits > 128)
    return std::nullopt;
  return Network{*first, before + bits};
}

bool AddressGuard::allows(const Address& address) const {
  const auto has = [&](const Network& network) { return network.contains(address); };
  return std::any_of(allowed_.begin(), allowed_.end(), has) || is_public(address);
}

}  // namespace meshd::outbound
