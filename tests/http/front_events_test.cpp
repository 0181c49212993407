// Event streams: order, heartbeats, backlog, and their end.
#include "api/http/events.h"

#include "tests/http/front_fixture.h"

namespace meshd::http_test {

namespace {

using std::chrono::milliseconds;

// What every stream begins with.
const std::string kStart = ": open; resume with Last-Event-ID\nretry: 3000\n\n";

class FrontEvents : public Front {
 protected:
  /// Opens a stream and reads its head.
  RawClient open(const std::string& request = get("/events")) {
    const size_t before = state_->open_streams().size();
    RawClient client = connect();
    client.send(request);
    const std::string head = client.receive_until("\r\n\r\n");
    EXPECT_NE(std::string::npos, head.find("Content-Type: text/event-stream")) << head;
    EXPECT_TRUE(eventually([&] { return request != get("/events") || state_->open_streams().size() > before; }));
    return client;
  }
};

TEST_F(FrontEvents, stream_says_at_once_that_it_is_open) {
  start();
  RawClient client = open();
  EXPECT_NE("", client.receive_until(kStart));
}

TEST_F(FrontEvents, polled_stream_is_refilled_now_and_then_as_long_as_that_is_wanted) {
  start();
  RawClient client = connect();
  client.send(get("/polled?times=3"));
  const Answer answer = client.receive(false, milliseconds(20'000)).value_or(Answer());
  EXPECT_EQ(answer.body, kStart + "data: 1\n\ndata: 2\n\ndata: 3\n\n");
}

TEST_F(FrontEvents, events_arrive_in_order) {
  start();
  RawClient client = open();
  const auto stream = state_->open_streams().back();
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(stream->send(api::format_event(std::to_string(i), "line", "{}")));
  std::string all;
  for (int i = 1; i <= 100; ++i) {
    EXPECT_NE("", client.receive_until("id: " + std::to_string(i) + "\nevent: line\ndata: {}\n\n")) << i;
  }
}

TEST_F(FrontEvents, silence_is_filled_with_heartbeats) {
  api::ServerOptions options;
  options.heartbeat = milliseconds(60);
  start(options);
  RawClient client = open();
  for (int i = 0; i < 3; ++i) EXPECT_NE("", client.receive_until(": heartbeat\n\n"));
}

TEST_F(FrontEvents, drain_says_shutdown_and_ends) {
  api::ServerOptions options;
  options.accept_after_drain = milliseconds(30);
  start(options);
  RawClient client = open();
  RawClient old = open("GET /events HTTP/1.0\r\n\r\n");
  const auto stream = state_->open_streams().front();
  bool closed = false;
  stream->on_close([&] { closed = true; });
  EXPECT_TRUE(server_->stop());
  EXPECT_NE("", client.receive_until("retry: 3000\nevent: shutdown\ndata: {}\n\n"));
  EXPECT_NE("", client.receive_until("\r\n0\r\n\r\n"));
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(kStart + "retry: 3000\nevent: shutdown\ndata: {}\n\n", old.receive_bytes(1000));
  EXPECT_TRUE(closed);
  EXPECT_FALSE(stream->send("x"));
}

TEST_F(FrontEvents, long_log_is_pulled_as_the_client_reads) {
  start();
  RawClient client = connect();
  client.send(get("/log?count=100000"));
  const Answer answer = client.receive(false, milliseconds(20'000)).value_or(Answer());
  EXPECT_EQ(200, answer.status);
  EXPECT_TRUE(answer.body.starts_with(kStart + "id: 1\nevent: line\ndata: {\"n\":1}\n\n"));
  EXPECT_TRUE(answer.body.ends_with("id: 100000\nevent: line\ndata: {\"n\":100000}\n\n"));
  EXPECT_EQ(100'000, std::count(answer.body.begin(), answer.body.end(), '{'));
}

TEST_F(FrontEvents, client_slower_than_its_backlog_is_cut_off) {
  start();
  RawClient client = open();
  const auto stream = state_->open_streams().back();
  const std::string event = api::format_event("1", "big", std::string(60'000, 'x'));
  int sent = 0;
  while (stream->send(event)) ASSERT_LT(++sent, 10'000);
  EXPECT_NE("", client.receive_until("\r\n0\r\n\r\n")) << "what was queued should have come, and the end";
}

TEST_F(FrontEvents, close_is_told_when_the_client_goes) {
  start();
  std::atomic<bool> closed{false};
  {
    RawClient client = open();
    state_->open_streams().back()->on_close([&] { closed = true; });
    EXPECT_EQ(1, server_->metrics().event_streams);
  }
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_TRUE(eventually([&] { return server_->metrics().event_streams == 0; }));
}

TEST_F(FrontEvents, streams_are_limited_and_cost_no_thread) {
  api::ServerOptions options;
  options.event_streams = 40;
  start(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(open());
  EXPECT_EQ(503, ask(get("/events")).status);
  EXPECT_LE(server_->metrics().worker_threads, 16);
  EXPECT_EQ(200, ask(get("/worker")).status);
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return server_->metrics().event_streams == 39; }));
  RawClient again = open();
}

TEST_F(FrontEvents, head_of_a_stream_opens_none) {
  start();
  const Answer head = ask("HEAD /events HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(200, head.status);
  EXPECT_EQ(0, server_->metrics().event_streams);
}

TEST_F(FrontEvents, stream_outlives_the_server_harmlessly) {
  start();
  RawClient client = open();
  const auto stream = state_->open_streams().back();
  server_.reset();
  EXPECT_FALSE(stream->send("x"));
  stream->wake();
  stream->finish();
  EXPECT_TRUE(stream->closed());
}

TEST(EventStream, holds_what_is_admitted_waits_or_is_written) {
  const auto ledger = core::MemoryLedger::create(5'000);  // events: 4,000
  api::EventStream stream(core::MemoryReservation(ledger, core::MemoryAccount::kEvents));
  EXPECT_TRUE(stream.admit(3'000));
  EXPECT_EQ(3'000, ledger->held_bytes());
  EXPECT_TRUE(stream.send(std::string(1'000, 'x')));
  EXPECT_GE(ledger->held_bytes(), 3'000);
  EXPECT_LT(ledger->held_bytes(), 3'100) << "what waits is of what was admitted";
  EXPECT_TRUE(stream.has_room()) << "what was admitted is made";
  EXPECT_GE(ledger->held_bytes(), 1'000);
  EXPECT_LT(ledger->held_bytes(), 2'000);
  EXPECT_EQ(1'000U, stream.take().size());
  EXPECT_GE(ledger->held_bytes(), 1'000);
  stream.taken_is_sent();
  EXPECT_EQ(0, ledger->held_bytes());
}

TEST(EventStream, batch_that_was_admitted_goes_as_a_whole) {
  const auto ledger = core::MemoryLedger::create(50'000);
  api::EventStream stream(core::MemoryReservation(ledger, core::MemoryAccount::kEvents), 1'000);
  EXPECT_TRUE(stream.send(std::string(400, 'x')));
  EXPECT_TRUE(stream.has_room());
  EXPECT_TRUE(stream.admit(6'000));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(stream.send(std::string(900, 'x'))) << i;
  EXPECT_FALSE(stream.has_room());
  EXPECT_FALSE(stream.send("x")) << "nobody has admitted it, and the client is behind";
}

TEST(EventStream, one_of_several_goes_on_with_a_large_event) {
  const auto ledger = core::MemoryLedger::create(5'000);
  const auto reservation = [&] { return core::MemoryReservation(ledger, core::MemoryAccount::kEvents); };
  api::EventStream first(reservation()), second(reservation());
  EXPECT_TRUE(first.admit(9'000));
  EXPECT_TRUE(first.send(std::string(8'000, 'x')));
  EXPECT_FALSE(second.admit(9'000));
  EXPECT_EQ("retry: 1000\n\n", second.take());
  EXPECT_TRUE(second.finished());
  second.taken_is_sent();
  first.close();
  EXPECT_EQ(0, ledger->held_bytes());
  api::EventStream third(reservation());
  EXPECT_TRUE(third.admit(9'000));
}

TEST(EventFormat, data_may_be_written_in_place) {
  EXPECT_EQ("id: 7\nevent: e\ndata: {}\n\n", api::format_event("7", "e", [](std::string& out) { out += "{}"; }));
}

TEST(EventFormat, lines_of_data_get_a_field_each) {
  EXPECT_EQ("id: 7\nevent: e\ndata: a\ndata: b\ndata: \n\n", api::format_event("7", "e", "a\nb\r\n"));
  EXPECT_EQ("id: 7\ndata: \n\n", api::format_event("7\nevent: forged", "", ""));
}

}  // namespace

}  // namespace meshd::http_test
