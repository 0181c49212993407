#include "api/http/body.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr size_t kReadAllStep = 64 * 1024;
// Memory that the first bytes of a body take, however many are announced: who sends slowly holds no more.
constexpr size_t kFirstStep = 256 * 1024;

core::Error larger_than(int64_t limit) {
  return core::Error("body_too_large", fmt::format("the body is larger than {} bytes", limit));
}

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

std::string BodyReader::read_all(int64_t limit, core::MemoryReservation& memory) {
  set_limit(bytes_read() + std::min(limit, INT64_MAX - bytes_read()));
  std::string out;
  size_t filled = 0;
  const int64_t announced = content_length().value_or(0) - bytes_read();
  size_t step = std::clamp<size_t>(announced > 0 ? static_cast<size_t>(std::min(announced, limit)) + 1 : kReadAllStep,
                                   1, kFirstStep);
  while (true) {
    // Grows with what has come, not with what was announced: a head alone costs no memory.
    if (filled == out.size()) {
      // While it is copied the text is there twice.
      memory.grow(static_cast<int64_t>(filled + step));
      out.resize(filled + step);
      memory.shrink(static_cast<int64_t>(filled));
      const size_t known = static_cast<size_t>(std::max<int64_t>(announced + 1 - static_cast<int64_t>(out.size()), 0));
      step = known > 0 ? std::min(known, out.size()) : out.size();
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

std::string MemoryBody::read_all(int64_t limit, core::MemoryReservation& memory) {
  if (position_ != 0) return BodyReader::read_all(limit, memory);
  if (static_cast<int64_t>(bytes_.size()) > std::min(limit, limit_)) throw larger_than(std::min(limit, limit_));
  std::string out = std::move(bytes_);
  bytes_.clear();
  return out;
}

size_t MemoryBody::read_some(std::span<std::byte> destination) {
  const size_t count = std::min(destination.size(), bytes_.size() - position_);
  if (static_cast<int64_t>(position_ + count) > limit_) {
    throw larger_than(limit_);
  }
  if (count != 0) std::memcpy(destination.data(), bytes_.data() + position_, count);
  position_ += count;
  return count;
}

std::string_view PeekedBody::peek(size_t count) {
  const size_t before = first_.size();
  if (before >= count) return std::string_view(first_).substr(0, count);
  first_.resize(count);
  size_t filled = before;
  while (filled < count) {
    const size_t got = body_->read_some(std::as_writable_bytes(std::span(first_)).subspan(filled));
    if (got == 0) break;
    filled += got;
  }
  first_.resize(filled);
  return first_;
}

size_t PeekedBody::read_some(std::span<std::byte> destination) {
  if (given_ == first_.size()) return body_->read_some(destination);
  const size_t count = std::min(destination.size(), first_.size() - given_);
  std::memcpy(destination.data(), first_.data() + given_, count);
  given_ += count;
  return count;
}

}  // namespace meshd::api
