// The head reader on bytes alone. What is hostile over sockets stands in tests/http; here is what the reader makes of
// what is good, and that it does not matter how the bytes are cut.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "api/http/head.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

Head read(const std::string& text) { return parse_head(text, {}); }

TEST(Head, fields_of_a_full_request_are_read) {
  const Head head = read(
      "PUT /v1/arrays/a%20b/data?slice=0:2&x HTTP/1.1\r\nhost: h:80\r\nContent-Length: 12\r\nX-A:  b c \t\r\n"
      "Expect: 100-Continue\r\nCONNECTION: Foo, close\r\nA_B: dropped\r\n\r\n");
  EXPECT_EQ("PUT", head.method);
  EXPECT_EQ("/v1/arrays/a%20b/data?slice=0:2&x", head.target);
  EXPECT_EQ("/v1/arrays/a%20b/data", head.path);
  EXPECT_EQ("slice=0:2&x", head.raw_query);
  EXPECT_EQ(1, head.minor_version);
  EXPECT_EQ("b c", head.headers.get("x-a"));
  EXPECT_EQ(Framing::kLength, head.framing);
  EXPECT_EQ(12, head.content_length);
  EXPECT_TRUE(head.expect_continue);
  EXPECT_FALSE(head.keep_alive);
  EXPECT_FALSE(head.headers.has("A_B"));
}

TEST(Head, absolute_form_loses_its_authority) {
  const Head head = read("GET HTTP://H:80?q HTTP/1.1\r\nHost: h:80\r\n\r\n");
  EXPECT_EQ("/", head.path);
  EXPECT_EQ("q", head.raw_query);
  EXPECT_EQ("HTTP://H:80?q", head.target);
}

TEST(Head, old_version_closes_unless_asked) {
  EXPECT_FALSE(read("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(read("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
  EXPECT_TRUE(read("GET / HTTP/1.1\r\nHost: h\r\n\r\n").keep_alive);
}

TEST(Head, zero_length_is_no_body) {
  const Head head = read("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(Framing::kNone, head.framing);
  EXPECT_FALSE(head.expect_continue);
}

TEST(HeadScanner, end_does_not_depend_on_how_bytes_arrive) {
  const std::string head = "\r\nGET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";
  const std::string bytes = head + "GET /next";
  for (size_t step = 1; step < 12; ++step) {
    HeadScanner scanner{HeadLimits()};
    std::optional<size_t> end;
    for (size_t have = step; !end; have += step) end = scanner.find_end(std::string_view(bytes).substr(0, have));
    EXPECT_EQ(head.size(), *end) << step;
  }
}

TEST(HeadScanner, limits_hold_at_their_edges) {
  HeadLimits limits;
  limits.bytes = 100;
  limits.fields = 2;
  const std::string line = "GET / HTTP/1.1\r\n";
  const auto find = [&](const std::string& bytes) { return HeadScanner(limits).find_end(bytes); };
  const std::string exact = line + "A: " + std::string(100 - line.size() - 7, 'x') + "\r\n\r\n";
  ASSERT_EQ(100U, exact.size());
  EXPECT_EQ(100U, find(exact));
  EXPECT_THROW(find(line + "A: x" + exact.substr(line.size() + 3)), core::Error);
  EXPECT_EQ(line.size() + 14, find(line + "A: b\r\nA: b\r\n\r\n"));
  EXPECT_THROW(find(line + "A: b\r\nA: b\r\nA: b\r\n\r\n"), core::Error);
}

TEST(Head, random_damage_is_read_or_refused_but_never_more) {
  const std::string good =
      "POST /a/b?c=d HTTP/1.1\r\nHost: h:80\r\nContent-Length: 12\r\nConnection: close\r\nX: \"q\"\r\n\r\n";
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 1 + round % 3; ++change) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1);
          break;
        default:
          bytes.insert(at, 1, "\r\n\t :,;/%"[random() % 9]);
      }
    }
    try {
      HeadScanner scanner{HeadLimits()};
      if (const auto end = scanner.find_end(bytes)) {
        const Head head = parse_head(std::string_view(bytes).substr(0, *end), {});
        EXPECT_TRUE(head.path == "*" || head.path.starts_with('/')) << bytes;
        EXPECT_GE(head.content_length, 0);
      }
    } catch (const core::Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace meshd::api
