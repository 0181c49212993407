#include "api/server/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

namespace meshd::api {

namespace {

constexpr size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr size_t kWireBytes = 4 * kRecordBytes;  ///< of records that are read ahead, and made before they are sent
constexpr size_t kKeptBytes = 4 * 1024;          ///< of memory that an idle stream keeps
/// Records that carry no data (key updates, alerts, empty ones) in one read(). Clients have no use for so many; each
/// costs us more than it costs them.
constexpr int kMostEmptyRecords = 32;

constexpr std::string_view kPlainAnswer =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 38\r\nConnection: close\r\n\r\n"
    "this port speaks TLS: ask by https://\n";

}  // namespace

/// The socket's side of the session.
struct TlsStream::Wire {
  int socket = -1;
  // OpenSSL could read ahead by itself, but would then work through all records without data in one call.
  std::unique_ptr<char[]> in;  ///< kWireBytes read ahead, only while there are any
  size_t in_begin = 0, in_end = 0;
  std::string out;       ///< records to be sent
  size_t sent = 0;       ///< of them, at the front
  bool blocked = false;  ///< the last read found nothing
  bool ended = false;    ///< the peer closed its side

  static int read(BIO* bio, char* destination, size_t size, size_t* count) {
    Wire& wire = *static_cast<Wire*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *count = 0;
    if (wire.in_begin == wire.in_end && !wire.receive()) {
      if (wire.blocked) BIO_set_retry_read(bio);
      return 0;
    }
    *count = std::min(size, wire.in_end - wire.in_begin);
    std::memcpy(destination, wire.in.get() + wire.in_begin, *count);
    wire.in_begin += *count;
    return 1;
  }

  bool receive() {
    if (!in) in.reset(new (std::nothrow) char[kWireBytes]);
    if (!in) return false;
    ssize_t got = 0;
    do {
      got = ::recv(socket, in.get(), kWireBytes, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    in_begin = 0;
    in_end = static_cast<size_t>(std::max<ssize_t>(got, 0));
    ended = got == 0;
    blocked = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return got > 0;
  }

  void release() {
    if (in_begin == in_end) in.reset();
  }

  static int write(BIO* bio, const char* data, size_t size, size_t* count) {
    Wire& wire = *static_cast<Wire*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    try {
      wire.out.append(data, size);
    } catch (const std::bad_alloc&) {
      return 0;  // an exception must not pass through OpenSSL
    }
    *count = size;
    return 1;
  }

  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return static_cast<const Wire*>(BIO_get_data(bio))->ended ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* method() {
    struct Free {
      void operator()(BIO_METHOD* made) const { BIO_meth_free(made); }
    };
    static const std::unique_ptr<BIO_METHOD, Free> made = [] {
      std::unique_ptr<BIO_METHOD, Free> out(BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "meshd socket"));
      if (!out) throw std::bad_alloc();
      BIO_meth_set_read_ex(out.get(), &Wire::read);
      BIO_meth_set_write_ex(out.get(), &Wire::write);
      BIO_meth_set_ctrl(out.get(), &Wire::control);
      return out;
    }();
    return made.get();
  }
};

void TlsStream::Free::operator()(ssl_st* session) const { SSL_free(session); }

TlsStream::TlsStream(ssl_ctx_st* context, int socket) : wire_(std::make_unique<Wire>()), session_(SSL_new(context)) {
  wire_->socket = socket;
  BIO* bio = session_ ? BIO_new(Wire::method()) : nullptr;
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, wire_.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(session_.get(), bio, bio);
  SSL_set_accept_state(session_.get());
}

TlsStream::~TlsStream() = default;

ByteStream::Result TlsStream::look_at_first_byte() {
  char first = 0;
  const ssize_t count = ::recv(wire_->socket, &first, 1, MSG_DONTWAIT | MSG_PEEK);
  if (count == 0) return {Outcome::kEnd};
  if (count < 0)
    return {errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Outcome::kWouldBlockRead : Outcome::kBroken};
  is_first_byte_known_ = true;
  const bool is_letter = (first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z');
  if (!is_letter) return {Outcome::kBytes};
  // Reads the request first: closing with unread bytes would reset the connection and may lose the response.
  std::array<char, kRecordBytes> request{};
  [[maybe_unused]] ssize_t moved = ::recv(wire_->socket, request.data(), request.size(), MSG_DONTWAIT);
  moved = ::send(wire_->socket, kPlainAnswer.data(), kPlainAnswer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(wire_->socket, SHUT_WR);
  return {Outcome::kEnd};
}

ByteStream::Result TlsStream::open() {
  if (is_open_) return {Outcome::kBytes};
  if (!is_first_byte_known_) {
    const Result looked = look_at_first_byte();
    if (looked.outcome != Outcome::kBytes) return looked;
  }
  const Result before = flush();
  if (before.outcome != Outcome::kBytes) return before;
  ERR_clear_error();
  const int result = SSL_do_handshake(session_.get());
  const Result out = result == 1 ? Result{Outcome::kBytes} : stopped(result);
  wire_->release();
  is_open_ = result == 1;
  const Result after = flush();  // also the alert with the reason
  if (after.outcome == Outcome::kBroken) return after;
  // The rest of the last flight is sent with the first response.
  if (!is_open_ && out.outcome == Outcome::kWouldBlockRead && after.outcome == Outcome::kWouldBlockWrite) return after;
  return out;
}

ByteStream::Result TlsStream::stopped(int result) {
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {Outcome::kWouldBlockRead};
    case SSL_ERROR_ZERO_RETURN:
      return {Outcome::kEnd};
    default:
      is_broken_ = true;
      // Without close_notify: framing decides whether the request was complete.
      return {wire_->ended ? Outcome::kEnd : Outcome::kBroken};
  }
}

ByteStream::Result TlsStream::read(std::span<std::byte> destination) {
  const Result got = read_records(destination);
  wire_->release();
  return got;
}

ByteStream::Result TlsStream::read_records(std::span<std::byte> destination) {
  // Replies to key updates: a client that requests them and reads none gets no more.
  if (!wire_->out.empty()) {
    const Result flushed = flush();
    if (flushed.outcome == Outcome::kBroken || wire_->out.size() - wire_->sent > 2 * kWireBytes)
      return {Outcome::kBroken};
  }
  size_t total = 0;
  for (int empty = 0; empty < kMostEmptyRecords;) {
    size_t count = 0;
    wire_->blocked = false;
    ERR_clear_error();
    const int result = SSL_read_ex(session_.get(), destination.data() + total, destination.size() - total, &count);
    total += count;
    if (result == 1) {
      if (total < destination.size() && has_buffered()) continue;
      return {Outcome::kBytes, total};
    }
    const Result why = stopped(result);
    if (total > 0) return {Outcome::kBytes, total};  // the next call returns the reason
    if (why.outcome != Outcome::kWouldBlockRead) return why;
    if (wire_->blocked) {
      const Result flushed = flush();
      return flushed.outcome == Outcome::kBroken ? flushed : why;
    }
    ++empty;  // a record without data
  }
  is_broken_ = true;
  return {Outcome::kBroken};
}

ByteStream::Result TlsStream::write_record(std::span<const iovec> pieces, size_t skip) {
  const void* data = static_cast<const char*>(pieces[0].iov_base) + skip;
  size_t size = std::min(pieces[0].iov_len - skip, kRecordBytes);
  std::array<char, kRecordBytes> gathered;
  if (size < kRecordBytes && pieces.size() > 1) {
    std::memcpy(gathered.data(), data, size);
    for (const iovec& piece : pieces.subspan(1)) {
      const size_t step = std::min(piece.iov_len, kRecordBytes - size);
      if (step == 0) continue;  // nothing, from nowhere
      std::memcpy(gathered.data() + size, piece.iov_base, step);
      size += step;
      if (size == kRecordBytes) break;
    }
    data = gathered.data();
  }
  size_t count = 0;
  ERR_clear_error();
  // The memory behind it takes everything, and a handshake is not begun again: nothing to wait for.
  if (SSL_write_ex(session_.get(), data, size, &count) != 1) {
    is_broken_ = true;
    return {Outcome::kBroken};
  }
  return {Outcome::kBytes, count};
}

ByteStream::Result TlsStream::write(std::span<const iovec> pieces) {
  const Result before = flush();
  if (before.outcome != Outcome::kBytes) return before;
  size_t total = 0;
  size_t skip = 0;  // of the first piece
  while (wire_->out.size() < kWireBytes) {
    while (!pieces.empty() && skip >= pieces[0].iov_len) {
      skip -= pieces[0].iov_len;
      pieces = pieces.subspan(1);
    }
    if (pieces.empty()) break;
    const Result made = write_record(pieces, skip);
    if (made.outcome != Outcome::kBytes) return made;
    total += made.bytes;
    skip += made.bytes;
  }
  if (flush().outcome == Outcome::kBroken) return {Outcome::kBroken};
  return {Outcome::kBytes, total};
}

ByteStream::Result TlsStream::flush() {
  std::string& out = wire_->out;
  while (wire_->sent < out.size()) {
    const ssize_t count =
        ::send(wire_->socket, out.data() + wire_->sent, out.size() - wire_->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      return {errno == EAGAIN || errno == EWOULDBLOCK ? Outcome::kWouldBlockWrite : Outcome::kBroken};
    }
    wire_->sent += static_cast<size_t>(count);
  }
  wire_->sent = 0;
  if (out.capacity() > kKeptBytes) {
    out = {};
  } else {
    out.clear();
  }
  return {Outcome::kBytes};
}

void TlsStream::notify_end() {
  if (!is_open_ || is_broken_) return;
  ERR_clear_error();
  SSL_shutdown(session_.get());
  flush();
}

bool TlsStream::has_buffered() const { return wire_->in_begin < wire_->in_end || SSL_pending(session_.get()) > 0; }

}  // namespace meshd::api
