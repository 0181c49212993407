// TLS records over a socket, by OpenSSL. OpenSSL reads from the socket and writes into memory that goes to the socket
// in as few writes as it takes: so it never has to repeat a write, and head and body of a response are sent in one
// record.
#pragma once

#include <memory>
#include <span>

#include "api/server/byte_stream.h"

struct ssl_ctx_st;
struct ssl_st;

namespace meshd::api {

/// One thread at a time, as the interface requires. The first open() responds to plain HTTP with an error.
class TlsStream final : public ByteStream {
 public:
  /// The server's side. `socket` is non-blocking; its owner closes it. Throws std::bad_alloc.
  TlsStream(ssl_ctx_st* context, int socket);
  ~TlsStream() override;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  [[nodiscard]] bool is_open() const override { return is_open_; }
  Result open() override;
  Result read(std::span<std::byte> destination) override;
  Result write(std::span<const iovec> pieces) override;
  Result flush() override;
  /// close_notify.
  void notify_end() override;
  [[nodiscard]] bool has_buffered() const override;

 private:
  struct Wire;
  /// Peeks at the first byte: a letter begins a request in plain HTTP, which gets a response and is closed. kBytes when
  /// it may be TLS.
  Result look_at_first_byte();
  /// What a call of OpenSSL that moved nothing means.
  Result stopped(int result);
  Result read_records(std::span<std::byte> destination);
  /// One record, or less, of `pieces` from byte `skip` on.
  Result write_record(std::span<const iovec> pieces, size_t skip);

  struct Free {
    void operator()(ssl_st* session) const;
  };
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<ssl_st, Free> session_;
  bool is_first_byte_known_ = false;
  bool is_open_ = false;
  bool is_broken_ = false;
};

}  // namespace meshd::api
