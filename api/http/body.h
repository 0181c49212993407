// The body of a request, read by the handler itself, straight from the socket into the handler's own memory. It is an
// interface, so that handlers can be tested without a socket (MemoryBody).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "service/core/memory_ledger.h"

namespace meshd::api {

/// What arrives after the head, with transfer and content codings (gzip, deflate, zstd) decoded. Bytes are counted
/// after decoding unless said otherwise. One thread: the one that runs the handler. Every read may throw core::Error:
/// request_timeout (too slow), body_too_large (over the route's limit, set_limit, or an encoding that expands more than
/// 200 times), malformed_body (bad framing or coding, or the client disconnected before the end). After a throw nothing
/// more can be read.
class BodyReader {
 public:
  virtual ~BodyReader() = default;

  /// Size in bytes if it is known before reading: Content-Length and no content coding. 0 when the request has no body.
  [[nodiscard]] virtual std::optional<int64_t> content_length() const = 0;

  /// Puts at least one and at most destination.size() bytes into `destination` and returns how many; 0 only at the end
  /// of the body (or for an empty destination). Waits for the client. The first read answers Expect: 100-continue.
  virtual size_t read_some(std::span<std::byte> destination) = 0;

  /// No more than `bytes` may arrive in all: the next read that would pass it throws body_too_large. A handler that
  /// knows the size of its array sets it. It only ever lowers the route's own limit.
  virtual void set_limit(int64_t bytes) = 0;

  /// Decoded bytes handed out so far.
  [[nodiscard]] virtual int64_t bytes_read() const = 0;

  /// Fills `destination` to its end; throws malformed_body if the body ends earlier.
  void read_exactly(std::span<std::byte> destination);

  /// The rest of the body as a string, whose bytes `memory` holds as they arrive. Throws body_too_large if it has more
  /// than `limit` bytes, and memory_full.
  virtual std::string read_all(int64_t limit, core::MemoryReservation& memory);

  /// Throws malformed_body if there are bytes left: a body longer than its own length field.
  void expect_end();
};

/// No body. Without state: any number of requests may share one.
class EmptyBody final : public BodyReader {
 public:
  [[nodiscard]] std::optional<int64_t> content_length() const override { return 0; }
  size_t read_some(std::span<std::byte>) override { return 0; }
  void set_limit(int64_t) override {}
  [[nodiscard]] int64_t bytes_read() const override { return 0; }
  std::string read_all(int64_t, core::MemoryReservation&) override { return {}; }
};

/// A body in memory: bodies that the server read before the handler ran, and tests. Whoever made it holds its memory.
class MemoryBody final : public BodyReader {
 public:
  explicit MemoryBody(std::string bytes = {}) : bytes_(std::move(bytes)) {}

  [[nodiscard]] std::optional<int64_t> content_length() const override { return static_cast<int64_t>(bytes_.size()); }
  size_t read_some(std::span<std::byte> destination) override;
  void set_limit(int64_t bytes) override { limit_ = bytes; }
  [[nodiscard]] int64_t bytes_read() const override { return static_cast<int64_t>(position_); }
  std::string read_all(int64_t limit, core::MemoryReservation& memory) override;
  /// All of them, until read_all() takes them.
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t position_ = 0;
  int64_t limit_ = INT64_MAX;
};

/// A body whose first bytes are looked at before it is read.
class PeekedBody final : public BodyReader {
 public:
  explicit PeekedBody(std::shared_ptr<BodyReader> body) : body_(std::move(body)) {}

  /// The first `count` bytes, or fewer where the body has no more; reading begins with them all the same. Before the
  /// first read. Waits for the client, and throws as read_some.
  std::string_view peek(size_t count);

  [[nodiscard]] std::optional<int64_t> content_length() const override { return body_->content_length(); }
  size_t read_some(std::span<std::byte> destination) override;
  void set_limit(int64_t bytes) override { body_->set_limit(bytes); }
  [[nodiscard]] int64_t bytes_read() const override {
    return body_->bytes_read() - static_cast<int64_t>(first_.size() - given_);
  }

 private:
  std::shared_ptr<BodyReader> body_;
  std::string first_;
  size_t given_ = 0;
};

}  // namespace meshd::api
