// The byte stream of a client's connection, plain or TLS: PlainStream reads and writes the socket, TlsStream
// (api/server/tls_stream.h) reads and writes TLS records. Connection, SocketBody and Outgoing use this and no socket
// call of their own; no call waits: when the socket has to become ready first, the caller waits for it (Asio in the
// reactor; a handler's fiber is suspended meanwhile) and calls again.
#pragma once

#include <cstddef>
#include <span>

struct iovec;

namespace meshd::api {

/// One thread at a time: whoever owns the connection.
class ByteStream {
 public:
  enum class Outcome {
    kBytes,            ///< `bytes` were moved
    kWouldBlockRead,   ///< nothing until the socket is readable
    kWouldBlockWrite,  ///< nothing until the socket is writable
    kEnd,              ///< the peer sends no more; of read() and open()
    kBroken,           ///< the connection is of no more use
  };
  struct Result {
    Outcome outcome = Outcome::kBroken;
    size_t bytes = 0;
  };

  virtual ~ByteStream() = default;

  /// read() and write() may be called. False until a TLS handshake is done.
  [[nodiscard]] virtual bool is_open() const = 0;
  /// The next step of what has to happen before; kBytes once it is done. A step may take milliseconds of computation.
  virtual Result open() = 0;
  /// Puts at least one byte into `destination`, which is not empty. Never kWouldBlockWrite.
  virtual Result read(std::span<std::byte> destination) = 0;
  /// Takes bytes from the front of `pieces`, as many as the socket takes; they leave in as few segments as they can.
  /// What it took may still have to be flushed. Never kWouldBlockRead.
  virtual Result write(std::span<const iovec> pieces) = 0;
  /// kBytes when all that was taken is with the kernel.
  virtual Result flush() = 0;
  /// Sends the peer, if that is possible without waiting, the end of the stream (close_notify). The caller closes the
  /// socket, or its writing half, afterwards; read() works until then.
  virtual void notify_end() = 0;
  /// The stream has buffered bytes: read() can return some without the socket becoming readable.
  [[nodiscard]] virtual bool has_buffered() const = 0;
};

/// The socket's own bytes.
class PlainStream final : public ByteStream {
 public:
  /// `socket` is non-blocking; its owner closes it.
  explicit PlainStream(int socket) : socket_(socket) {}

  [[nodiscard]] bool is_open() const override { return true; }
  Result open() override { return {Outcome::kBytes}; }
  Result read(std::span<std::byte> destination) override;
  Result write(std::span<const iovec> pieces) override;
  Result flush() override { return {Outcome::kBytes}; }
  void notify_end() override {}  // closing is enough
  [[nodiscard]] bool has_buffered() const override { return false; }

 private:
  int socket_;
};

}  // namespace meshd::api
