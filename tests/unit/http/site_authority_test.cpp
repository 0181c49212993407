#include <gtest/gtest.h>

#include "api/fields/authority.h"

namespace meshd::api {
namespace {

using Kind = Authority::Kind;

struct Row {
  std::string_view text;
  Kind kind;
  std::string_view host;
  int port;  ///< -1: none
};

TEST(Authority, forms_compare_by_what_they_name) {
  constexpr Row kRows[] = {
      {"Example.ORG", Kind::kName, "example.org", -1},
      {"example.org.", Kind::kName, "example.org", -1},
      {"example.org:8080", Kind::kName, "example.org", 8080},
      {"example.org:", Kind::kName, "example.org", -1},
      {"127.0.0.1:0", Kind::kIpv4, "127.0.0.1", 0},
      {"[::1]", Kind::kIpv6, "::1", -1},
      {"[0:0:0:0:0:0:0:1]:65535", Kind::kIpv6, "::1", 65535},
      {"[2001:DB8::0:1]", Kind::kIpv6, "2001:db8::1", -1},
      {"[::ffff:127.0.0.1]", Kind::kIpv4, "127.0.0.1", -1},
      {"[::FFFF:7f00:1]", Kind::kIpv4, "127.0.0.1", -1},
      // Some resolvers take these for 127.0.0.1; browsers rewrite them before they send Host.
      {"2130706433", Kind::kName, "2130706433", -1},
      {"0x7f.0.0.1", Kind::kName, "0x7f.0.0.1", -1},
      {"127.1", Kind::kName, "127.1", -1},
      {"127.0.0.01", Kind::kName, "127.0.0.01", -1},
  };
  for (const Row& row : kRows) {
    const auto found = parse_authority(row.text);
    ASSERT_TRUE(found) << row.text;
    EXPECT_EQ(row.kind, found->kind) << row.text;
    EXPECT_EQ(row.host, found->host) << row.text;
    EXPECT_EQ(row.port, found->port ? int{*found->port} : -1) << row.text;
  }
}

TEST(Authority, what_is_no_host_is_none) {
  for (const std::string_view text :
       {"",          ":",         ":80",        ".",       "..",           ".localhost", "a..b", "localhost..",
        "user@host", "host/path", "host:65536", "host:-1", "host:x",       "host:80:80", "[::1", "::1]",
        "[::1]x",    "[]",        "[1.2.3.4]",  "[host]",  "[::1%25eth0]", "a b",        "a\\b"}) {
    EXPECT_FALSE(parse_authority(text)) << text;
  }
}

TEST(Authority, loopback_is_told_from_what_looks_like_it) {
  for (const std::string_view text : {"localhost", "LOCALHOST:1", "localhost.", "a.b.localhost", "127.0.0.1",
                                      "127.255.0.9", "[::1]", "[::ffff:127.0.0.1]"}) {
    EXPECT_TRUE(parse_authority(text)->is_loopback()) << text;
  }
  for (const std::string_view text : {"localhost.example.org", "xlocalhost", "127.0.0.1.example.org", "128.0.0.1",
                                      "127.1", "0.0.0.0", "[::]", "[::2]", "2130706433", "127.0.0.1.nip.io"}) {
    EXPECT_FALSE(parse_authority(text)->is_loopback()) << text;
  }
}

TEST(Origin, equal_is_scheme_host_and_port) {
  EXPECT_EQ(parse_origin("http://a"), parse_origin("HTTP://A:80"));
  EXPECT_EQ(parse_origin("https://a:443"), parse_origin("https://a"));
  EXPECT_NE(parse_origin("http://a"), parse_origin("https://a"));
  EXPECT_NE(parse_origin("http://a"), parse_origin("http://a:8080"));
  EXPECT_NE(parse_origin("http://127.0.0.1"), parse_origin("http://localhost"));
}

TEST(Origin, what_is_none_is_none) {
  for (const std::string_view text :
       {"null", "", "*", "a", "http:", "http://", "file://", "http://a/", "http://a/b", "http://u@a",
        "http://127.0.0.1:8080@evil.example", "://a", "http://a http://b"}) {
    EXPECT_FALSE(parse_origin(text)) << text;
  }
}

}  // namespace
}  // namespace meshd::api
