#include "api/server/byte_stream.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace meshd::api {

namespace {

using Outcome = ByteStream::Outcome;

std::array<int, 2> socket_pair() {
  std::array<int, 2> fds{-1, -1};
  EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()));
  return fds;
}

/// A stream over one end of a socket pair.
class PlainStreamTest : public ::testing::Test {
 protected:
  ~PlainStreamTest() override {
    for (const int fd : fds_) ::close(fd);
  }
  ByteStream::Result read(size_t most) { return stream_.read(std::as_writable_bytes(std::span(room_).first(most))); }

  std::array<int, 2> fds_ = socket_pair();
  std::array<char, 64> room_{};
  PlainStream stream_{fds_[0]};
};

TEST_F(PlainStreamTest, is_open_from_the_start) {
  EXPECT_TRUE(stream_.is_open());
  EXPECT_EQ(Outcome::kBytes, stream_.open().outcome);
}

TEST_F(PlainStreamTest, read_without_bytes_would_block_and_end_is_told) {
  EXPECT_EQ(Outcome::kWouldBlockRead, read(64).outcome);
  ASSERT_EQ(5, ::send(fds_[1], "hello", 5, 0));
  EXPECT_EQ(3U, read(3).bytes);
  EXPECT_EQ(2U, read(64).bytes);
  EXPECT_FALSE(stream_.has_buffered());
  ::shutdown(fds_[1], SHUT_WR);
  EXPECT_EQ(Outcome::kEnd, read(64).outcome);
}

TEST_F(PlainStreamTest, pieces_leave_in_one_segment_in_order) {
  std::string head = "head ";
  std::string body = "body";
  const std::array<iovec, 2> pieces{{{head.data(), head.size()}, {body.data(), body.size()}}};
  EXPECT_EQ(9U, stream_.write(pieces).bytes);
  EXPECT_EQ(Outcome::kBytes, stream_.flush().outcome);
  EXPECT_EQ(9, ::recv(fds_[1], room_.data(), room_.size(), 0));
  EXPECT_EQ("head body", std::string_view(room_.data(), 9));
}

TEST_F(PlainStreamTest, write_to_a_full_socket_would_block) {
  std::string much(1 << 20, 'x');
  const iovec piece{much.data(), much.size()};
  const size_t taken = stream_.write({&piece, 1}).bytes;
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, much.size());
  EXPECT_EQ(Outcome::kWouldBlockWrite, stream_.write({&piece, 1}).outcome);
}

TEST_F(PlainStreamTest, write_to_a_peer_that_is_gone_is_broken) {
  ::shutdown(fds_[1], SHUT_RD);
  std::string text = "text";
  const iovec piece{text.data(), text.size()};
  EXPECT_EQ(Outcome::kBroken, stream_.write({&piece, 1}).outcome);
}

}  // namespace

}  // namespace meshd::api
