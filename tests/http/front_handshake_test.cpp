// TLS handshakes that do not come to their end, and clients that do not speak TLS.
#include <chrono>
#include <thread>
#include <vector>

#include "tests/http/front_fixture.h"

namespace meshd::http_test {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDeadline{400};
// The head of a record with a ClientHello of 512 bytes, and no more of it.
constexpr std::string_view kBegins("\x16\x03\x01\x02\x00\x01", 6);

class FrontHandshake : public Front {
 protected:
  FrontHandshake() {
    api::ServerOptions options;
    options.tls = server_certificate();
    options.head_deadline = kDeadline;
    start(options);
  }
  RawClient connect_only() {
    RawClient client;
    client.connect_socket(server_->port());
    return client;
  }
  int status_over_tls() {
    RawClient client = connect_only();
    client.start_tls();
    client.send(get("/health"));
    return client.receive().value_or(Answer()).status;
  }
};

TEST_F(FrontHandshake, silent_one_ends_at_the_deadline_of_a_head) {
  const auto start = std::chrono::steady_clock::now();
  RawClient client = connect_only();
  EXPECT_TRUE(client.closed());
  EXPECT_GE(std::chrono::steady_clock::now() - start, kDeadline);
  EXPECT_EQ(1, server_->metrics().handshakes_late);
}

TEST_F(FrontHandshake, dripping_one_ends_at_the_same_deadline) {
  RawClient client = connect_only();
  const std::string begins = std::string(kBegins) + std::string(500, '\0');
  const auto start = std::chrono::steady_clock::now();
  size_t sent = 0;
  while (sent < begins.size() && !client.closed(milliseconds(10)))
    if (!client.send(begins.substr(sent++, 1))) break;
  EXPECT_LT(sent, begins.size());
  EXPECT_LT(std::chrono::steady_clock::now() - start, kDeadline * 5);
  EXPECT_EQ(1, server_->metrics().handshakes_late);
}

TEST_F(FrontHandshake, request_in_plain_http_is_told_so) {
  RawClient client = connect_only();
  client.send(get("/health"));
  const Answer answer = client.receive().value_or(Answer());
  EXPECT_EQ(400, answer.status);
  EXPECT_NE(std::string::npos, answer.body.find("https")) << answer.body;
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(eventually([&] { return server_->metrics().handshakes_failed == 1; }));
}

TEST_F(FrontHandshake, two_hundred_that_stand_still_delay_nobody) {
  std::vector<RawClient> standing;
  for (int i = 0; i < 200; ++i) {
    standing.push_back(connect_only());
    standing.back().send(kBegins);
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(200, status_over_tls());
  for (RawClient& client : standing) EXPECT_TRUE(client.closed());
  EXPECT_EQ(200, server_->metrics().handshakes_late);
  EXPECT_EQ(5, server_->metrics().handshakes_done);
}

}  // namespace

}  // namespace meshd::http_test
