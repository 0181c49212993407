#include "api/http/body.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr size_t kReadAllStep = 64 * 1024;

}  // namespace

void BodyReader::read_exactly(std::span<std::byte> destination) {
  size_t filled = 0;
  while (filled < destination.size()) {
    const size_t count = read_some(destination.subspan(filled));
    if (count == 0) {
      throw core::Error("malformed_body", fmt::format("the body ends too early: expected {} more bytes, got {}",
                                                      destination.size(), filled));
    }
    filled += count;
  }
}

std::string BodyReader::read_all(int64_t limit) {
  set_limit(bytes_read() + std::min(limit, INT64_MAX - bytes_read()));
  std::string out;
  size_t filled = 0;
  const int64_t announced = content_length().value_or(0) - bytes_read();
  size_t step = std::clamp<size_t>(announced > 0 ? static_cast<size_t>(std::min(announced, limit)) + 1 : kReadAllStep,
                                   1, size_t{4} << 20);
  while (true) {
    // Grows with what has come, not with what was announced: a head alone costs no memory.
    if (filled == out.size()) {
      out.resize(filled + step);
      step = std::max(step, out.size());
    }
    const size_t count = read_some(std::as_writable_bytes(std::span(out)).subspan(filled));
    if (count == 0) break;
    filled += count;
  }
  out.resize(filled);
  return out;
}

void BodyReader::expect_end() {
  std::byte one{};
  if (read_some({&one, 1}) != 0) {
    throw core::Error(
        "malformed_body",
        fmt::format("the body is longer than what it holds: bytes are left after byte {}", bytes_read() - 1));
  }
}

size_t MemoryBody::read_some(std::span<std::byte> destination) {
  const size_t count = std::min(destination.size(), bytes_.size() - position_);
  if (static_cast<int64_t>(position_ + count) > limit_) {
    throw core::Error("body_too_large", fmt::format("the body is larger than {} bytes", limit_));
  }
  if (count != 0) std::memcpy(destination.data(), bytes_.data() + position_, count);
  position_ += count;
  return count;
}

}  // namespace meshd::api
