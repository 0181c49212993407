// Handlers that wait, and uploads that trickle, keep no thread: a few threads serve any number of them.
#include <atomic>
#include <vector>

#include "tests/http/front_fixture.h"

namespace meshd::http_test {

namespace {

using std::chrono::milliseconds;

class FrontWaits : public Front {
 protected:
  static api::ServerOptions two_threads() {
    api::ServerOptions options;
    options.workers = options.workers_max = options.upload_workers_max = 2;
    return options;
  }
  bool handlers_become(int64_t count) {
    return eventually([&] { return server_->metrics().handlers == count; });
  }
};

TEST_F(FrontWaits, two_hundred_waiting_handlers_leave_two_threads_free) {
  start(two_threads());
  std::vector<RawClient> waiting;
  for (int i = 0; i < 200; ++i) {
    waiting.push_back(connect());
    waiting.back().send(get("/await?ms=60000"));
  }
  ASSERT_TRUE(handlers_become(200));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(200, ask(get("/worker")).status);
  EXPECT_LE(server_->metrics().worker_threads, 2);
}

TEST_F(FrontWaits, handlers_end_when_their_clients_leave) {
  start(two_threads());
  {
    std::vector<RawClient> waiting;
    for (int i = 0; i < 50; ++i) {
      waiting.push_back(connect());
      // The second request is on its way already: that the client left shows all the same.
      waiting.back().send(get("/await?ms=60000") + get("/health"));
    }
    ASSERT_TRUE(handlers_become(50));
  }
  EXPECT_TRUE(handlers_become(0));
}

TEST_F(FrontWaits, a_wait_ends_at_its_time_and_the_connection_goes_on) {
  start(two_threads());
  RawClient client = connect();
  client.send(get("/await?ms=30") + get("/health"));
  EXPECT_EQ("waited\n", client.receive().value_or(Answer()).body);
  EXPECT_EQ(200, client.receive().value_or(Answer()).status);
}

TEST_F(FrontWaits, draining_wakes_what_waits) {
  start(two_threads());
  RawClient client = connect();
  client.send(get("/await?ms=60000"));
  ASSERT_TRUE(handlers_become(1));
  server_->begin_drain();
  EXPECT_EQ("drained\n", client.receive().value_or(Answer()).body);
}

TEST_F(FrontWaits, stopping_ends_what_waits) {
  start(two_threads());
  std::vector<RawClient> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(connect());
    waiting.back().send(get("/await?ms=60000"));
  }
  ASSERT_TRUE(handlers_become(20));
  server_->stop_now();
  for (RawClient& client : waiting) client.receive_bytes(size_t{1} << 20);
}

TEST_F(FrontWaits, trickling_uploads_leave_two_threads_free) {
  start(two_threads());
  std::vector<RawClient> uploads;
  for (int i = 0; i < 100; ++i) {
    uploads.push_back(connect());
    // More than the front takes in by itself, so that the handler reads; and bytes that are there from the start.
    uploads.back().send("PUT /bulk?size=1000000 HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n" +
                        std::string(70'000, 'x'));
  }
  ASSERT_TRUE(handlers_become(100));
  for (int round = 0; round < 5; ++round) {
    for (RawClient& client : uploads) client.send(std::string(100, 'x'));
    EXPECT_EQ(
        201, ask("PUT /bulk HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'y')).status);
  }
  // They end as all uploads do.
  for (RawClient& client : uploads) client.send(std::string(1'000'000 - 70'000 - 500, 'x'));
  for (RawClient& client : uploads) EXPECT_EQ(201, client.receive().value_or(Answer()).status);
  EXPECT_TRUE(handlers_become(0));
}

TEST_F(FrontWaits, an_upload_below_the_rate_is_refused_however_much_came_first) {
  api::ServerOptions options = two_threads();
  options.rate_grace = milliseconds(100);
  options.minimum_bytes_per_second = 1'000'000;
  start(options);
  RawClient client = connect();
  client.send("PUT /bulk HTTP/1.1\r\nHost: t\r\nContent-Length: 100000000\r\n\r\n" + std::string(5'000'000, 'x'));
  // Silence now: five seconds of the rate came in advance and count for nothing.
  const Answer answer = client.receive().value_or(Answer());
  EXPECT_EQ(408, answer.status) << answer.body;
}

}  // namespace

}  // namespace meshd::http_test
