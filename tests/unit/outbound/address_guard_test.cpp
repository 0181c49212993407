// Which addresses requests of the server itself may go to.
#include "service/outbound/address_guard.h"

#include <gtest/gtest.h>

#include "service/outbound/post_pool.h"

namespace meshd::outbound {
namespace {

bool allowed(std::string_view address, std::vector<std::string_view> networks = {}) {
  std::vector<Network> parsed;
  for (const std::string_view text : networks) parsed.push_back(parse_network(text).value());
  return AddressGuard(parsed).allows(parse_address(address).value());
}

TEST(AddressGuard, public_addresses_are_allowed) {
  for (const char* address :
       {"1.1.1.1", "8.8.8.8", "100.63.255.255", "172.15.0.1", "172.32.0.1", "192.0.1.1", "223.255.255.255",
        "2606:4700::1111", "2a00:1450::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"})
    EXPECT_TRUE(allowed(address)) << address;
}

TEST(AddressGuard, others_are_not) {
  for (const char* address : {"0.0.0.0",
                              "10.0.0.1",
                              "100.64.0.1",
                              "100.127.255.255",
                              "127.0.0.1",
                              "127.255.0.1",
                              "169.254.169.254",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.0.0.8",
                              "192.0.2.1",
                              "192.168.1.1",
                              "198.18.0.1",
                              "198.51.100.1",
                              "203.0.113.1",
                              "224.0.0.1",
                              "239.1.1.1",
                              "240.0.0.1",
                              "255.255.255.255",
                              "::",
                              "::1",
                              "fe80::1",
                              "fec0::1",
                              "fc00::1",
                              "fd00:ec2::254",
                              "ff02::1",
                              "2001:db8::1",
                              "2001::1",
                              "3fff::1",
                              "::ffff:127.0.0.1",
                              "::ffff:169.254.169.254",
                              "64:ff9b::10.0.0.1",
                              "64:ff9b:1::1",
                              "2002:7f00:1::1",
                              "2002:a00:1::1",
                              "100::1"})
    EXPECT_FALSE(allowed(address)) << address;
}

TEST(AddressGuard, networks_that_the_operator_names_are_allowed) {
  EXPECT_TRUE(allowed("10.1.2.3", {"10.0.0.0/8"}));
  EXPECT_TRUE(allowed("192.168.7.9", {"10.0.0.0/8", "192.168.7.8/31"}));
  EXPECT_FALSE(allowed("192.168.7.10", {"192.168.7.8/31"}));
  EXPECT_TRUE(allowed("127.0.0.1", {"127.0.0.1"}));
  EXPECT_TRUE(allowed("fd12:3456::1", {"fd12::/16"}));
  EXPECT_FALSE(allowed("fd13::1", {"fd12::/16"}));
  EXPECT_TRUE(allowed("::ffff:10.0.0.9", {"10.0.0.0/8"})) << "the same address, in IPv6";
  EXPECT_TRUE(allowed("::1", {"::/0"}));
}

TEST(AddressGuard, networks_are_read_strictly) {
  for (const char* text : {"10.0.0.0/8", "0.0.0.0/0", "::/0", "fd00::/8", "192.168.1.1", "::1/128"})
    EXPECT_TRUE(parse_network(text)) << text;
  for (const char* text : {"", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "10.0.0/8", "::/129", "all",
                           "example.org", "[::1]", "fe80::1%eth0"})
    EXPECT_FALSE(parse_network(text)) << text;
}

TEST(Urls, those_that_cannot_be_posted_to_are_said) {
  const AddressGuard guard;
  for (const char* url :
       {"https://example.org/hook?x=1", "http://example.org:8080", "https://1.1.1.1/a", "https://[2606:4700::1111]/"})
    EXPECT_EQ(mistake_of_url(url, guard), std::nullopt) << url;
  for (const char* url :
       {"", "example", "ftp://example.org", "file:///etc/passwd", "gopher://example.org", "https://ann:pw@example.org",
        "https://ann@example.org", "https://example.org/#part", "http://127.0.0.1/", "http://[::1]/",
        "http://169.254.169.254/latest", "http://0x7f000001/", "http://2130706433/", "http://0177.0.0.1/",
        "http://127.1/", "http://[::ffff:127.0.0.1]/", "http://exa mple.org/", "https://example.org\r\nX: y"})
    EXPECT_TRUE(mistake_of_url(url, guard)) << url;
  EXPECT_TRUE(mistake_of_url(std::string("http://example.org/a\0b", 22), guard)) << "libcurl would read the first half";
  EXPECT_EQ(mistake_of_url("http://127.0.0.1/", AddressGuard({parse_network("127.0.0.0/8").value()})), std::nullopt);
}

}  // namespace
}  // namespace meshd::outbound
