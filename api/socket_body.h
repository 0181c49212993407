// A body that a handler on a worker reads itself: from the client's stream into the handler's memory, without a copy in
// between unless chunk heads, a content coding or TLS stand in the way. Waits in poll() with the front's deadlines.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "api/body.h"
#include "api/body_pipeline.h"
#include "api/byte_stream.h"
#include "api/input_buffer.h"
#include "api/rate_guard.h"

namespace meshd::api {

/// One thread, the one that owns the connection while the handler runs.
class SocketBody final : public BodyReader {
 public:
  /// `socket` is the one below `transport`, for waiting. `input` holds what came with the head and keeps what comes
  /// after the body. `on_first_read` sends 100 Continue if the client waits for it. `bytes_in` counts raw bytes.
  SocketBody(ByteStream& transport, int socket, InputBuffer& input, BodyPipeline& pipeline, RateGuard guard,
             std::function<void()> on_first_read, std::atomic<int64_t>& bytes_in);

  [[nodiscard]] std::optional<int64_t> content_length() const override { return pipeline_.announced(); }
  size_t read_some(std::span<std::byte> destination) override;
  void set_limit(int64_t bytes) override { pipeline_.lower_limit(bytes); }
  [[nodiscard]] int64_t bytes_read() const override { return pipeline_.produced(); }

  /// A read threw: where the next request begins is not known any more.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  size_t read_checked(std::span<std::byte> destination);
  size_t receive(std::span<std::byte> destination);
  /// Waits a moment for POLLIN or POLLOUT, or throws when the body has been too slow.
  void wait(short event);

  ByteStream& transport_;
  int socket_;
  InputBuffer& input_;
  BodyPipeline& pipeline_;
  RateGuard guard_;
  std::function<void()> on_first_read_;
  std::atomic<int64_t>& bytes_in_;
  bool failed_ = false;
};

}  // namespace meshd::api
