// Bodies both ways: byte by byte the same, whatever the framing, the coding, the sizes and the speed.
#include <algorithm>
#include <thread>

#include "service/core/ids.h"
#include "tests/http/compress.h"
#include "tests/http/front_fixture.h"

namespace meshd::http_test {

namespace {

using std::chrono::milliseconds;

constexpr size_t kUpload = (size_t{5} << 20) + 12'345;

std::string pattern_text(size_t size) {
  std::string out(size, '\0');
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>(pattern(i));
  return out;
}

std::string expected(const std::string& bytes) {
  return R"({"size":)" + std::to_string(bytes.size()) + R"(,"digest":")" + core::sha256_hex(bytes) + "\"}\n";
}

std::string put(const std::string& target, const std::string& fields) {
  return "PUT " + target + " HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n";
}

std::string in_chunks(const std::string& bytes, size_t first) {
  std::string out;
  size_t step = first;
  for (size_t at = 0; at < bytes.size(); step = step * 3 % 70'001 + 1) {
    const size_t count = std::min(step, bytes.size() - at);
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", count);
    out.append(size).append(bytes, at, count).append("\r\n");
    at += count;
  }
  return out + "0\r\n\r\n";
}

/// Sends in pieces of odd sizes from another thread, so that answers can be read meanwhile.
void send_in_pieces(RawClient& client, const std::string& bytes, size_t piece) {
  for (size_t at = 0; at < bytes.size(); at += piece) client.send(std::string_view(bytes).substr(at, piece));
}

class FrontBodies : public Front {
 protected:
  const std::string bytes_ = pattern_text(kUpload);

  void expect_upload(const std::string& head, const std::string& body) {
    RawClient client = connect();
    client.send(head);
    std::thread sender([&] { send_in_pieces(client, body, 100'003); });
    const Answer answer = client.receive().value_or(Answer());
    sender.join();
    EXPECT_EQ(201, answer.status) << answer.body;
    EXPECT_EQ(expected(bytes_), answer.body);
    client.send(get("/health"));
    EXPECT_EQ(200, client.receive().value_or(Answer()).status) << "the connection should have been kept";
  }
};

TEST_F(FrontBodies, sized_upload_lands_whole) {
  start();
  const std::string length = "Content-Length: " + std::to_string(kUpload) + "\r\n";
  expect_upload(put("/bulk?digest", length), bytes_);
  expect_upload(put("/bulk?digest&size=" + std::to_string(kUpload), length), bytes_);
}

TEST_F(FrontBodies, chunked_upload_lands_whole) {
  start();
  const std::string fields = "Transfer-Encoding: chunked\r\n";
  expect_upload(put("/bulk?digest", fields), in_chunks(bytes_, 1));
  expect_upload(put("/bulk?digest&size=" + std::to_string(kUpload), fields), in_chunks(bytes_, 65'000));
}

TEST_F(FrontBodies, coded_upload_lands_decoded) {
  start();
  const std::string target = "/bulk?digest&size=" + std::to_string(kUpload);
  const std::string gzip = gzip_of(bytes_);
  expect_upload(put(target, "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(gzip.size()) + "\r\n"), gzip);
  expect_upload(put(target, "Content-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n"),
                in_chunks(zstd_of(bytes_), 700));
}

TEST_F(FrontBodies, document_in_gzip_reaches_the_handler_decoded) {
  start();
  const std::string text = gzip_of(std::string(100'000, 'a') + "end");
  const Answer answer =
      ask("POST /show HTTP/1.1\r\nHost: t\r\nContent-Encoding: gzip\r\nContent-Length: " + std::to_string(text.size()) +
          "\r\n\r\n" + text);
  EXPECT_TRUE(answer.body.ends_with("aaaend\n"));
}

TEST_F(FrontBodies, upload_of_the_wrong_size_is_refused) {
  start();
  EXPECT_EQ(413, ask(put("/bulk?size=4", "Content-Length: 5\r\n") + "hello").status);
  EXPECT_EQ(400, ask(put("/bulk?size=6", "Content-Length: 5\r\n") + "hello").status);
  EXPECT_EQ(413, ask(put("/bulk?size=4", "Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n\r\n").status);
  EXPECT_EQ(400, ask(put("/bulk?size=6", "Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n\r\n").status);
}

TEST_F(FrontBodies, expect_continue_is_answered_when_the_handler_reads) {
  start();
  RawClient client = connect();
  client.send(put("/bulk?digest", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(100, client.receive().value_or(Answer()).status);
  client.send("hello");
  EXPECT_EQ(expected("hello"), client.receive().value_or(Answer()).body);
  client.send("POST /show HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(100, client.receive().value_or(Answer()).status);
  client.send("hello");
  EXPECT_EQ(200, client.receive().value_or(Answer()).status);
}

TEST_F(FrontBodies, expect_continue_is_refused_before_the_body) {
  start();
  RawClient refused = connect();
  refused.send(put("/refuse", "Content-Length: 1000000000\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(413, refused.receive().value_or(Answer()).status);
  EXPECT_TRUE(refused.closed());
  RawClient deaf = connect();
  deaf.send(put("/deaf", "Content-Length: 10\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(200, deaf.receive().value_or(Answer()).status);
  EXPECT_TRUE(deaf.closed());
}

TEST_F(FrontBodies, early_refusal_of_a_large_body_reaches_the_client) {
  start();
  RawClient client = connect();
  client.send(put("/refuse", "Content-Length: 3000000\r\n"));
  const std::string body(3'000'000, 'x');
  std::thread sender([&] { send_in_pieces(client, body, 65'536); });
  const Answer answer = client.receive().value_or(Answer());
  sender.join();
  EXPECT_EQ(413, answer.status);
  EXPECT_EQ("close", answer.header("Connection"));
}

TEST_F(FrontBodies, early_refusal_reaches_a_client_that_sends_all_before_it_reads) {
  start();
  for (const std::string& framing :
       {std::string("Content-Length: 8000000\r\n"), std::string("Transfer-Encoding: chunked\r\n")}) {
    RawClient client = connect();
    EXPECT_TRUE(
        client.send(put("/refuse", framing) + (framing[0] == 'T' ? "7a1200\r\n" : "") + std::string(8'000'000, 'x')))
        << framing;
    EXPECT_EQ(413, client.receive().value_or(Answer()).status) << framing;
  }
}

TEST_F(FrontBodies, bodies_taken_in_are_limited_in_all) {
  api::ServerOptions options;
  options.memory = core::MemoryLedger::create(5 << 18);  // requests: 1 MiB
  start(options);
  const std::string body(900'000, 'x');
  const std::string head = "POST /show HTTP/1.1\r\nHost: t\r\nContent-Length: 900000\r\n\r\n";
  RawClient first = connect();
  first.send(head + body.substr(0, 850'000));
  ASSERT_TRUE(eventually([&] { return server_->metrics().bytes_in > 850'000; }));
  const Answer second = ask(head + body);
  EXPECT_EQ(503, second.status);
  EXPECT_FALSE(second.header("Retry-After").empty());
  first.send(body.substr(850'000));
  EXPECT_EQ(200, first.receive().value_or(Answer()).status);
  EXPECT_EQ(200, ask(head + body).status);
}

TEST_F(FrontBodies, answers_that_are_not_read_are_limited_in_all) {
  api::ServerOptions options;
  const auto ledger = core::MemoryLedger::create(50 << 20);  // answers: 40 MiB
  options.memory = ledger;
  start(options);
  const std::string ask_for_text = get("/text?size=30000000", "Authorization: x\r\n");
  RawClient slow = connect();
  slow.send(ask_for_text);
  const auto held = [&] { return ledger->stats()[static_cast<size_t>(core::MemoryAccount::kAnswers)].held_bytes; };
  ASSERT_TRUE(eventually([&] { return held() >= 30'000'000; }));
  const Answer second = ask(ask_for_text);
  EXPECT_EQ(503, second.status);
  EXPECT_EQ("1", second.header("Retry-After"));
  EXPECT_NE(std::string::npos, second.body.find("memory_full"));
  EXPECT_EQ(413, ask(get("/text?size=50000000")).status) << "it would not fit alone";
  EXPECT_EQ(200, ask(get("/health")).status);
  EXPECT_EQ(30'000'001U, slow.receive().value_or(Answer()).body.size());
  EXPECT_EQ(200, ask(ask_for_text).status);
  EXPECT_TRUE(eventually([&] { return held() == 0; }));
}

TEST_F(FrontBodies, memory_leaves_whole_and_in_ranges) {
  start();
  const std::string all = pattern_text(kLargeBytes);
  EXPECT_TRUE(all == ask(get("/large")).body);
  const Answer part = ask(get("/large", "Range: bytes=1048570-1048590\r\nIf-Range: \"v1\"\r\n"));
  EXPECT_EQ(206, part.status);
  EXPECT_EQ("bytes 1048570-1048590/3145728", part.header("Content-Range"));
  EXPECT_TRUE(all.substr(1'048'570, 21) == part.body);
  EXPECT_TRUE(all.substr(kLargeBytes - 7) == ask(get("/large", "Range: bytes=-7\r\n")).body);
  EXPECT_EQ(200, ask(get("/large", "Range: bytes=0-1\r\nIf-Range: \"v0\"\r\n")).status);
}

TEST_F(FrontBodies, generated_body_leaves_whole_in_every_framing) {
  start();
  const std::string all = pattern_text(700'001);
  for (const char* target : {"/generated", "/generated-here"}) {
    const std::string query = std::string(target) + "?size=700001";
    RawClient client = connect();
    client.send(get(query));
    EXPECT_TRUE(all == client.receive().value_or(Answer()).body);
    client.send(get(query + "&chunked"));
    const Answer chunked = client.receive().value_or(Answer());
    EXPECT_EQ("chunked", chunked.header("Transfer-Encoding"));
    EXPECT_TRUE(all == chunked.body);
    client.send("GET " + query + "&chunked HTTP/1.0\r\n\r\n");
    const Answer old = client.receive().value_or(Answer());
    EXPECT_EQ("", old.header("Transfer-Encoding"));
    EXPECT_TRUE(all == old.body);
  }
  EXPECT_EQ("", ask(get("/generated?size=0&chunked")).body);
  EXPECT_EQ(200, ask(get("/generated?size=0")).status);
}

TEST_F(FrontBodies, generated_body_that_ends_early_breaks_the_connection) {
  start();
  EXPECT_EQ(0, ask(get("/generated?size=1000&stop=10")).status);
  EXPECT_EQ(200, ask(get("/health")).status);
}

TEST_F(FrontBodies, slow_reader_is_cut_and_holds_no_thread) {
  api::ServerOptions options;
  options.rate_grace = milliseconds(300);
  start(options);
  RawClient reader = connect();
  reader.send(get("/generated?size=1000000000"));
  EXPECT_TRUE(eventually([&] { return server_->metrics().connections_writing == 1; }));
  EXPECT_EQ(200, ask(get("/worker")).status);
  EXPECT_TRUE(eventually([&] { return server_->metrics().connections_writing == 0; }))
      << "the slow reader is still there";
}

TEST_F(FrontBodies, what_holds_memory_is_to_be_read_in_its_time) {
  api::ServerOptions options;
  options.rate_grace = milliseconds(500);
  options.longest_held = std::chrono::seconds(1);
  start(options);
  for (const char* target : {"/text?size=200000000", "/generated?size=200000000&held=200000000"}) {
    RawClient slow = connect();
    slow.send(get(target));
    // Many times the least rate of any body, and never silent for long.
    std::string got = "x";
    for (int i = 0; i < 500 && !got.empty(); ++i) {
      got = slow.receive_bytes(10'000);
      std::this_thread::sleep_for(milliseconds(20));
      if (server_->metrics().connections_writing == 0) break;
    }
    EXPECT_EQ(server_->metrics().connections_writing, 0) << target << ": it holds the memory of its answer still";
  }
  RawClient other = connect();
  other.send(get("/text?size=20000000"));
  EXPECT_EQ(size_t{20'000'001}, other.receive().value_or(Answer()).body.size()) << "and the end of a line";
}

TEST_F(FrontBodies, upload_below_the_minimum_rate_is_cut) {
  api::ServerOptions options;
  options.rate_grace = milliseconds(300);
  options.minimum_bytes_per_second = 100'000;
  start(options);
  RawClient client = connect();
  client.send(put("/bulk", "Content-Length: 1000000\r\n"));
  std::optional<Answer> answer;
  for (int i = 0; i < 200 && !answer; ++i) {
    client.send("some bytes");  // never silent for long
    answer = client.receive(false, milliseconds(20));
  }
  EXPECT_EQ(408, answer.value_or(Answer()).status);
}

}  // namespace

}  // namespace meshd::http_test
