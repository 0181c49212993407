// A body that a handler on a worker reads itself: from the client's stream into the handler's memory, without a copy in
// between unless there are chunk heads, a content coding or TLS. It reads available bytes; when there are none its
// caller's fiber waits, with the front's deadlines.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "api/http/body.h"
#include "api/http/rate_guard.h"
#include "api/server/body_pipeline.h"
#include "api/server/byte_stream.h"
#include "api/server/input_buffer.h"

namespace meshd::api {

/// One fiber, the one that owns the connection while the handler runs.
class SocketBody final : public BodyReader {
 public:
  /// Returns when the socket is ready for what the stream needs, kWouldBlockRead or kWouldBlockWrite, or at the time.
  using WaitReady = std::function<void(ByteStream::Outcome, RateGuard::Time)>;

  /// `input` holds what came with the head and keeps what comes after the body. `on_first_read` sends 100 Continue if
  /// the client waits for it. `bytes_in` counts raw bytes.
  SocketBody(ByteStream& transport, InputBuffer& input, BodyPipeline& pipeline, RateGuard guard, WaitReady wait_ready,
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

  ByteStream& transport_;
  InputBuffer& input_;
  BodyPipeline& pipeline_;
  RateGuard guard_;
  WaitReady wait_ready_;
  std::function<void()> on_first_read_;
  std::atomic<int64_t>& bytes_in_;
  bool failed_ = false;
};

}  // namespace meshd::api
