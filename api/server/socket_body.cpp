#include "api/server/socket_body.h"

#include <algorithm>
#include <utility>

#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr size_t kStaging = 64 * 1024;

}  // namespace

SocketBody::SocketBody(ByteStream& transport, InputBuffer& input, BodyPipeline& pipeline, RateGuard guard,
                       WaitReady wait_ready, std::function<void()> on_first_read, std::atomic<int64_t>& bytes_in)
    : transport_(transport),
      input_(input),
      pipeline_(pipeline),
      guard_(guard),
      wait_ready_(std::move(wait_ready)),
      on_first_read_(std::move(on_first_read)),
      bytes_in_(bytes_in) {}

size_t SocketBody::read_some(std::span<std::byte> destination) {
  if (failed_) throw core::Error("malformed_body", "the body cannot be read any further");
  if (destination.empty()) return 0;
  if (auto first = std::exchange(on_first_read_, nullptr)) {
    guard_.start(std::chrono::steady_clock::now());
    first();
  }
  try {
    return read_checked(destination);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

size_t SocketBody::read_checked(std::span<std::byte> destination) {
  while (!pipeline_.done()) {
    const BodyPipeline::Step step = pipeline_.pump(input_.view(), destination);
    input_.consume(step.consumed);
    if (step.produced != 0) return step.produced;
    if (pipeline_.done()) break;
    if (const int64_t room = pipeline_.direct_room(); room > 0) {
      const size_t most = static_cast<size_t>(std::min<int64_t>(room, static_cast<int64_t>(destination.size())));
      const size_t count = receive(destination.first(most));
      pipeline_.took(destination.first(count));
      return count;
    }
    input_.commit(receive(std::as_writable_bytes(input_.prepare(kStaging))));
  }
  return 0;
}

size_t SocketBody::receive(std::span<std::byte> destination) {
  while (true) {
    const ByteStream::Result got = transport_.read(destination);
    switch (got.outcome) {
      case ByteStream::Outcome::kBytes:
        guard_.progress(std::chrono::steady_clock::now(), static_cast<int64_t>(got.bytes));
        bytes_in_.fetch_add(static_cast<int64_t>(got.bytes), std::memory_order_relaxed);
        return got.bytes;
      case ByteStream::Outcome::kWouldBlockRead:
      case ByteStream::Outcome::kWouldBlockWrite:
        if (guard_.too_slow(std::chrono::steady_clock::now())) {
          throw core::Error("request_timeout", "the body arrives too slowly");
        }
        wait_ready_(got.outcome, guard_.deadline());
        break;
      case ByteStream::Outcome::kEnd:
        throw core::Error("malformed_body", "the client closed the connection inside of the body");
      case ByteStream::Outcome::kBroken:
        throw core::Error("malformed_body", "the connection broke inside of the body");
    }
  }
}

}  // namespace meshd::api
