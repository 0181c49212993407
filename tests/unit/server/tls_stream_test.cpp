#include "api/server/tls_stream.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "api/server/tls_context.h"
#include "tests/http/tls_files.h"
#include "tests/support/temp_folder.h"

namespace meshd::api {

namespace {

using Outcome = ByteStream::Outcome;

constexpr int kRounds = 64;  ///< of a handshake, which needs three

std::array<int, 2> socket_pair() {
  std::array<int, 2> fds{-1, -1};
  EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()));
  return fds;
}

/// A stream over one end of a socket pair, and an ordinary client of OpenSSL at the other.
class TlsStreamTest : public ::testing::Test {
 protected:
  TlsStreamTest()
      : client_context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free),
        files_(http_test::make_certificate(folder_.path(), "server")),
        context_(files_.certificate, files_.key),
        stream_(context_.accept(fds_[0])) {
    SSL_CTX_clear_mode(client_context_.get(), SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_security_level(client_context_.get(), 0);
  }
  ~TlsStreamTest() override {
    for (const int fd : fds_) ::close(fd);
  }

  void make_client() {
    client_.reset(SSL_new(client_context_.get()));
    SSL_set_fd(client_.get(), fds_[1]);
  }

  /// Both sides in turns; what open() said last.
  Outcome shake_hands() {
    make_client();
    Outcome outcome = Outcome::kWouldBlockRead;
    for (int round = 0; round < kRounds && outcome == Outcome::kWouldBlockRead; ++round) {
      SSL_connect(client_.get());
      outcome = stream_->open().outcome;
    }
    SSL_connect(client_.get());  // reads what the server said last
    return outcome;
  }

  ByteStream::Result read(size_t most) { return stream_->read(std::as_writable_bytes(std::span(room_).first(most))); }

  /// What the client gets from one read: "" when there is nothing or the end.
  std::string client_reads() {
    std::string out(room_.size(), '\0');
    size_t count = 0;
    // The first call may find a session ticket.
    for (int i = 0; i < 3 && count == 0; ++i) SSL_read_ex(client_.get(), out.data(), out.size(), &count);
    out.resize(count);
    return out;
  }

  testing::TempFolder folder_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> client_context_;
  http_test::TlsFiles files_;
  TlsContext context_;
  std::array<int, 2> fds_ = socket_pair();
  std::array<char, 64 * 1024> room_{};
  std::unique_ptr<ByteStream> stream_;
  std::unique_ptr<SSL, void (*)(SSL*)> client_{nullptr, &SSL_free};
};

TEST_F(TlsStreamTest, handshake_opens_and_bytes_go_both_ways) {
  EXPECT_FALSE(stream_->is_open());
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  EXPECT_TRUE(stream_->is_open());
  EXPECT_STREQ("TLSv1.3", SSL_get_version(client_.get()));
  EXPECT_EQ(Outcome::kWouldBlockRead, read(64).outcome);
  ASSERT_EQ(5, SSL_write(client_.get(), "hello", 5));
  EXPECT_EQ(3U, read(3).bytes);
  EXPECT_TRUE(stream_->has_buffered());
  EXPECT_EQ(2U, read(64).bytes);
  EXPECT_FALSE(stream_->has_buffered());
  std::string head = "head ";
  std::string body = "body";
  const std::array<iovec, 3> pieces{{{head.data(), head.size()}, {nullptr, 0}, {body.data(), body.size()}}};
  EXPECT_EQ(9U, stream_->write(pieces).bytes);
  EXPECT_EQ("head body", client_reads()) << "one record";
}

TEST_F(TlsStreamTest, handshake_that_comes_byte_by_byte_waits_each_time) {
  client_.reset(SSL_new(client_context_.get()));
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(client_.get(), in, out);
  Outcome outcome = Outcome::kWouldBlockRead;
  int steps = 0;
  for (int round = 0; round < kRounds && outcome != Outcome::kBytes; ++round) {
    SSL_connect(client_.get());
    for (char byte = 0; BIO_read(out, &byte, 1) == 1;) {
      ASSERT_EQ(Outcome::kWouldBlockRead, outcome);
      ASSERT_EQ(1, ::send(fds_[1], &byte, 1, 0));
      outcome = stream_->open().outcome;
      ++steps;
    }
    const ssize_t count = ::recv(fds_[1], room_.data(), room_.size(), 0);
    if (count > 0) BIO_write(in, room_.data(), static_cast<int>(count));
  }
  EXPECT_EQ(Outcome::kBytes, outcome);
  EXPECT_GT(steps, 200);
}

TEST_F(TlsStreamTest, tiny_records_are_read_together) {
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  constexpr size_t kRecords = 150;
  for (size_t i = 0; i < kRecords; ++i) ASSERT_EQ(1, SSL_write(client_.get(), "x", 1));
  size_t total = 0;
  int calls = 0;
  while (total < kRecords) {
    const ByteStream::Result got = read(kRecords);
    ASSERT_EQ(Outcome::kBytes, got.outcome);
    total += got.bytes;
    ++calls;
  }
  EXPECT_LE(calls, 10);
  EXPECT_EQ(Outcome::kWouldBlockRead, read(64).outcome);
}

TEST_F(TlsStreamTest, client_that_does_not_read_blocks_writes_and_gets_every_byte_in_the_end) {
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  std::string much(3 << 20, '\0');
  for (size_t i = 0; i < much.size(); ++i) much[i] = static_cast<char>(i * 7 + i / 1000);
  std::string got;
  size_t written = 0;
  bool was_blocked = false;
  while (written < much.size()) {
    // In two pieces, which are not those of the call before.
    const size_t half = (much.size() - written) / 3;
    const std::array<iovec, 2> pieces{
        {{much.data() + written, half}, {much.data() + written + half, much.size() - written - half}}};
    const ByteStream::Result sent = stream_->write(pieces);
    if (sent.outcome == Outcome::kWouldBlockWrite) {
      was_blocked = true;
      EXPECT_EQ(Outcome::kWouldBlockWrite, stream_->flush().outcome);
      const std::string some = client_reads();
      ASSERT_FALSE(some.empty());
      got += some;
      continue;
    }
    ASSERT_EQ(Outcome::kBytes, sent.outcome);
    written += sent.bytes;
  }
  EXPECT_TRUE(was_blocked);
  while (got.size() < much.size()) {
    ASSERT_NE(Outcome::kBroken, stream_->flush().outcome);
    const std::string some = client_reads();
    ASSERT_FALSE(some.empty());
    got += some;
  }
  EXPECT_EQ(Outcome::kBytes, stream_->flush().outcome);
  EXPECT_TRUE(got == much);
}

TEST_F(TlsStreamTest, both_ends_tell_that_they_are_over) {
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  stream_->notify_end();
  EXPECT_EQ("", client_reads());
  EXPECT_NE(0, SSL_get_shutdown(client_.get()) & SSL_RECEIVED_SHUTDOWN);
  SSL_shutdown(client_.get());
  EXPECT_EQ(Outcome::kEnd, read(64).outcome);
  EXPECT_EQ(Outcome::kEnd, read(64).outcome);
}

TEST_F(TlsStreamTest, client_that_closes_without_a_word_is_at_its_end) {
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  ::shutdown(fds_[1], SHUT_WR);
  EXPECT_EQ(Outcome::kEnd, read(64).outcome);
}

TEST_F(TlsStreamTest, client_that_leaves_within_the_handshake_is_at_its_end) {
  make_client();
  SSL_connect(client_.get());
  EXPECT_EQ(Outcome::kWouldBlockRead, stream_->open().outcome);
  ::shutdown(fds_[1], SHUT_WR);
  EXPECT_EQ(Outcome::kEnd, stream_->open().outcome);
}

TEST_F(TlsStreamTest, plain_http_gets_an_answer_in_plain_text) {
  const std::string_view request = "GET / HTTP/1.1\r\nHost: t\r\n\r\n";
  ASSERT_EQ(static_cast<ssize_t>(request.size()), ::send(fds_[1], request.data(), request.size(), 0));
  EXPECT_EQ(Outcome::kEnd, stream_->open().outcome);
  const ssize_t count = ::recv(fds_[1], room_.data(), room_.size(), 0);
  const std::string_view answer(room_.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  const size_t body = answer.find("\r\n\r\n") + 4;
  EXPECT_NE(std::string_view::npos, answer.find("Content-Length: " + std::to_string(answer.size() - body))) << answer;
}

TEST_F(TlsStreamTest, garbage_breaks_the_handshake) {
  using namespace std::string_literals;  // there is a zero in it
  const std::string garbage = "\x16\x03\x01\x40\x00\x7f garbage that is no ClientHello \xff\xff\xff\xff\xff\xff"s;
  std::string bytes = garbage;
  while (bytes.size() < (1 << 15)) bytes += garbage;
  ASSERT_GT(::send(fds_[1], bytes.data(), bytes.size(), 0), 0);
  EXPECT_EQ(Outcome::kBroken, stream_->open().outcome);
  EXPECT_FALSE(stream_->is_open());
}

TEST_F(TlsStreamTest, garbage_after_the_handshake_breaks_the_stream) {
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  const std::string garbage(300, '\x17');
  ASSERT_GT(::send(fds_[1], garbage.data(), garbage.size(), 0), 0);
  EXPECT_EQ(Outcome::kBroken, read(64).outcome);
  EXPECT_EQ(Outcome::kBroken, read(64).outcome);
  stream_->notify_end();  // says nothing any more
}

TEST_F(TlsStreamTest, versions_before_1_2_are_refused) {
  SSL_CTX_set_min_proto_version(client_context_.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(client_context_.get(), TLS1_1_VERSION);
  EXPECT_EQ(Outcome::kBroken, shake_hands());
  EXPECT_EQ(SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, ERR_GET_REASON(ERR_peek_last_error()))
      << "the alert reaches the client";
}

TEST_F(TlsStreamTest, version_1_2_has_forward_secrecy_and_no_renegotiation) {
  SSL_CTX_set_max_proto_version(client_context_.get(), TLS1_2_VERSION);
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  EXPECT_TRUE(std::string_view(SSL_get_cipher(client_.get())).starts_with("ECDHE-")) << SSL_get_cipher(client_.get());
  SSL_renegotiate(client_.get());
  for (int round = 0; round < 3; ++round) {
    SSL_do_handshake(client_.get());
    EXPECT_NE(Outcome::kBytes, read(64).outcome);
  }
  EXPECT_NE(1, SSL_is_init_finished(client_.get()));
}

TEST_F(TlsStreamTest, ciphers_without_forward_secrecy_are_refused) {
  SSL_CTX_set_max_proto_version(client_context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(client_context_.get(), "AES128-GCM-SHA256:AES256-SHA");
  EXPECT_EQ(Outcome::kBroken, shake_hands());
}

TEST_F(TlsStreamTest, flood_of_key_updates_breaks_the_stream) {
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  ASSERT_EQ(1, SSL_write(client_.get(), "x", 1));
  for (int i = 0; i < 8; ++i) {  // a few are a client's right
    SSL_key_update(client_.get(), SSL_KEY_UPDATE_REQUESTED);
    ASSERT_EQ(1, SSL_do_handshake(client_.get()));
  }
  EXPECT_EQ(1U, read(64).bytes);
  EXPECT_EQ(Outcome::kWouldBlockRead, read(64).outcome);
  ASSERT_EQ(1, SSL_write(client_.get(), "y", 1));
  EXPECT_EQ(1U, read(64).bytes);
  for (int i = 0; i < 100; ++i) {
    SSL_key_update(client_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    ASSERT_EQ(1, SSL_do_handshake(client_.get()));
  }
  EXPECT_EQ(Outcome::kBroken, read(64).outcome);
}

TEST_F(TlsStreamTest, http_1_1_is_chosen_and_anything_else_refused) {
  const auto offer = [&](std::string_view protocols) {
    SSL_CTX_set_alpn_protos(client_context_.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                            static_cast<unsigned int>(protocols.size()));
  };
  offer("\x02h2\x08http/1.1");
  ASSERT_EQ(Outcome::kBytes, shake_hands());
  const unsigned char* chosen = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(client_.get(), &chosen, &size);
  EXPECT_EQ("http/1.1", std::string_view(reinterpret_cast<const char*>(chosen), size));
}

TEST_F(TlsStreamTest, client_that_speaks_only_h2_is_refused) {
  SSL_CTX_set_alpn_protos(client_context_.get(), reinterpret_cast<const unsigned char*>("\x02h2"), 3);
  EXPECT_EQ(Outcome::kBroken, shake_hands());
}

}  // namespace

}  // namespace meshd::api
