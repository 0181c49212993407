// Bodies on bytes alone: framing, limits, readers in memory.
#include <gtest/gtest.h>

#include <string>

#include "api/http/rate_guard.h"
#include "api/server/body_pipeline.h"
#include "service/core/error.h"
#include "service/core/memory_ledger.h"

namespace meshd::api {
namespace {

Head head_of(Framing framing, int64_t length = 0) {
  Head head;
  head.framing = framing;
  head.content_length = length;
  return head;
}

/// So many bytes that were read from elsewhere.
std::span<const std::byte> some(size_t count) {
  static constexpr std::byte kBytes[8]{};
  return std::span(kBytes).first(count);
}

/// Feeds `raw` in pieces of `step` into destinations of `room` bytes; what is not the body's is left in `rest`.
std::string decode(BodyPipeline& body, const std::string& raw, size_t step, size_t room, std::string* rest = nullptr) {
  std::string out;
  std::string buffer;
  size_t given = 0;
  while (!body.done()) {
    std::string destination(room, '\0');
    const BodyPipeline::Step moved = body.pump(buffer, std::as_writable_bytes(std::span(destination)));
    buffer.erase(0, moved.consumed);
    out.append(destination, 0, moved.produced);
    if (moved.produced != 0 || body.done()) continue;
    if (given == raw.size()) break;
    buffer.append(raw, given, step);
    given = std::min(given + step, raw.size());
  }
  if (rest != nullptr) *rest = buffer + raw.substr(given);
  return out;
}

TEST(BodyPipeline, chunks_are_joined_however_they_are_cut) {
  const std::string raw =
      "5;ext=\"a\"\r\nhello\r\n1 \t;x\r\n \r\nA\r\n0123456789\r\n000\r\nTrailer: x\r\n\r\nGET /next";
  for (size_t step = 1; step < 30; ++step) {
    for (const size_t room : {1, 2, 7, 100}) {
      BodyPipeline body(head_of(Framing::kChunked), nullptr, 1000);
      std::string rest;
      EXPECT_EQ("hello 0123456789", decode(body, raw, step, room, &rest));
      EXPECT_TRUE(body.done());
      EXPECT_EQ("GET /next", rest);
    }
  }
}

TEST(BodyPipeline, window_of_zstd_data_is_held_while_it_is_decoded) {
  // A frame with a window of 8 MiB, of which one block of a byte has come, and no end.
  const std::string begun("\x28\xb5\x2f\xfd\x00\x68\x08\x00\x00!", 10);
  const std::string end("\x09\x00\x00!", 4);
  const auto ledger = core::MemoryLedger::create(int64_t{20} << 20);  // requests: 16 MiB
  const auto held = [&] { return ledger->held_bytes() >> 20; };
  const auto body_with = [&] {
    return BodyPipeline(head_of(Framing::kLength, 14),
                        make_content_decoder("zstd", {ledger, core::MemoryAccount::kRequests}), 100);
  };
  BodyPipeline first = body_with();
  EXPECT_EQ(0, held());
  EXPECT_EQ("!", decode(first, begun, 3, 100));
  EXPECT_EQ(8, held());
  BodyPipeline second = body_with();
  EXPECT_EQ("!", decode(second, begun, 100, 100)) << "one may go beyond the limit";
  BodyPipeline third = body_with();
  try {
    decode(third, begun, 100, 100);
    FAIL() << "a third window fits";
  } catch (const core::Error& error) {
    EXPECT_EQ("memory_full", error.code().word());
  }
  EXPECT_EQ("!", decode(first, end, 100, 100));
  EXPECT_TRUE(first.done());
  EXPECT_LT(held(), 10) << "nothing is left to decode";
}

TEST(BodyPipeline, length_ends_the_body) {
  BodyPipeline body(head_of(Framing::kLength, 5), nullptr, 5);
  std::string rest;
  EXPECT_EQ("hello", decode(body, "helloGET", 3, 2, &rest));
  EXPECT_EQ("GET", rest);
  EXPECT_EQ(5, body.announced());
}

TEST(BodyPipeline, limit_is_reached_but_not_passed) {
  BodyPipeline enough(head_of(Framing::kChunked), nullptr, 5);
  EXPECT_EQ("hello", decode(enough, "5\r\nhello\r\n0\r\n\r\n", 100, 100));
  BodyPipeline over(head_of(Framing::kChunked), nullptr, 4);
  EXPECT_THROW(decode(over, "5\r\nhello\r\n0\r\n\r\n", 100, 100), core::Error);
  BodyPipeline announced(head_of(Framing::kLength, 10), nullptr, 100);
  EXPECT_THROW(announced.lower_limit(9), core::Error);
}

TEST(BodyPipeline, skipping_finds_the_same_end) {
  const std::string raw = "5\r\nhello\r\n0\r\n\r\nGET";
  for (size_t step = 1; step < raw.size(); ++step) {
    BodyPipeline body(head_of(Framing::kChunked), nullptr, INT64_MAX);
    size_t at = 0;
    while (!body.done()) at += body.skip(std::string_view(raw).substr(at, step));
    EXPECT_EQ("GET", raw.substr(at));
  }
}

TEST(BodyPipeline, direct_room_is_what_is_left_of_a_piece) {
  BodyPipeline body(head_of(Framing::kChunked), nullptr, 100);
  std::string none;
  EXPECT_EQ(3U, body.pump("5\r\n", std::as_writable_bytes(std::span(none))).consumed);
  EXPECT_EQ(5, body.direct_room());
  body.took(some(2));
  EXPECT_EQ(3, body.direct_room());
  body.took(some(3));
  EXPECT_EQ(0, body.direct_room());
  EXPECT_FALSE(body.done());
  EXPECT_EQ(7U, body.pump("\r\n0\r\n\r\n", std::as_writable_bytes(std::span(none))).consumed);
  EXPECT_TRUE(body.done());
}

/// A body without end, of which the client has said nothing.
class EndlessBody final : public BodyReader {
 public:
  [[nodiscard]] std::optional<int64_t> content_length() const override { return std::nullopt; }
  size_t read_some(std::span<std::byte> destination) override {
    read_ += static_cast<int64_t>(destination.size());
    return destination.size();
  }
  void set_limit(int64_t) override {}
  [[nodiscard]] int64_t bytes_read() const override { return read_; }

 private:
  int64_t read_ = 0;
};

TEST(BodyReader, text_is_held_as_it_arrives) {
  const auto ledger = core::MemoryLedger::create(5 << 20);  // requests: 4 MiB
  core::MemoryReservation memory(ledger, core::MemoryAccount::kRequests);
  EndlessBody body;
  EXPECT_THROW(body.read_all(INT64_MAX, memory), core::Error);
  EXPECT_LE(body.bytes_read(), 4 << 20);
  EXPECT_GE(body.bytes_read(), 1 << 20);
  EXPECT_LE(memory.bytes(), 4 << 20);
}

TEST(MemoryBody, reads_exactly_all_and_the_end) {
  core::MemoryReservation memory;
  MemoryBody body("hello world");
  std::string five(5, '\0');
  body.read_exactly(std::as_writable_bytes(std::span(five)));
  EXPECT_EQ("hello", five);
  EXPECT_EQ(" world", body.read_all(6, memory));
  EXPECT_NO_THROW(body.expect_end());
  EXPECT_EQ(11, body.bytes_read());
  EXPECT_THROW(body.read_exactly(std::as_writable_bytes(std::span(five))), core::Error);
  MemoryBody longer("hello");
  EXPECT_THROW(longer.read_all(4, memory), core::Error);
  MemoryBody rest("ab");
  EXPECT_THROW(rest.expect_end(), core::Error);
}

TEST(RateGuard, slowness_is_silence_or_a_low_rate) {
  using std::chrono::milliseconds;
  const RateGuard::Time start{};
  RateGuard guard(1000, milliseconds(1000));
  guard.start(start);
  EXPECT_FALSE(guard.too_slow(start + milliseconds(1000)));
  EXPECT_TRUE(guard.too_slow(start + milliseconds(1001)));
  guard.progress(start + milliseconds(900), 500);  // 100 ms of credit were left, 500 come to them
  EXPECT_EQ(guard.deadline(), start + milliseconds(1500));
  EXPECT_FALSE(guard.too_slow(start + milliseconds(1500)));
  EXPECT_TRUE(guard.too_slow(start + milliseconds(1501)));
}

TEST(RateGuard, a_burst_buys_no_silence_beyond_the_grace) {
  using std::chrono::milliseconds;
  const RateGuard::Time start{};
  RateGuard guard(1000, milliseconds(1000));
  guard.start(start);
  guard.progress(start, 1'000'000'000);
  EXPECT_EQ(guard.deadline(), start + milliseconds(1000));
  // Half of the rate from now on: it ends after twice the grace, wherever in the body it is.
  auto now = start;
  int steps = 0;
  while (!guard.too_slow(now + milliseconds(100))) {
    now += milliseconds(100);
    guard.progress(now, 50);
    ASSERT_LT(++steps, 100);
  }
  EXPECT_GE(now, start + milliseconds(1700));
  EXPECT_LE(now, start + milliseconds(2000));
}

TEST(RateGuard, a_client_at_the_rate_is_never_too_slow) {
  using std::chrono::milliseconds;
  const RateGuard::Time start{};
  RateGuard guard(1000, milliseconds(1000));
  guard.start(start);
  for (int i = 1; i <= 100'000; ++i) {
    const auto now = start + milliseconds(500 * i);
    ASSERT_FALSE(guard.too_slow(now)) << i;
    guard.progress(now, 500);
  }
}

}  // namespace
}  // namespace meshd::api
