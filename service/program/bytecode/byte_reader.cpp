#include "service/program/bytecode/byte_reader.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>

namespace meshd::program {

void ByteReader::fail(const std::string& message, core::ErrorCode code) const {
  throw core::Error(code, fmt::format("byte {} of the bytecode: {}", offset(), message));
}

uint8_t ByteReader::byte() {
  if (rest_.empty()) fail("more was expected, but the bytes end here");
  const auto out = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return out;
}

uint64_t ByteReader::varint() {
  const uint8_t first = byte();
  const int more = std::countr_zero(first);  // 8 for a byte of zeros: the value is in the eight bytes behind it
  if (more == 0) return first >> 1;
  const std::string_view bytes = take(static_cast<uint64_t>(more));
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return more == 8 ? value : (value << 8 | first) >> (more + 1);
}

int64_t ByteReader::signed_varint() {
  const uint64_t value = varint();
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

std::pair<uint64_t, bool> ByteReader::flagged_varint() {
  const uint64_t value = varint();
  return {value >> 1, (value & 1) != 0};
}

size_t ByteReader::count(std::string_view what) {
  const uint64_t out = varint();
  if (out > rest_.size()) fail(fmt::format("there are {} bytes for {} {}", rest_.size(), out, what));
  return static_cast<size_t>(out);
}

uint32_t ByteReader::index(size_t size, std::string_view what) {
  const uint64_t out = varint();
  if (out >= size || out > UINT32_MAX) {
    fail(fmt::format("there is no {} {}: the bytecode has {}", what, out, size));
  }
  return static_cast<uint32_t>(out);
}

std::string_view ByteReader::take(uint64_t size) {
  if (size > rest_.size()) {
    fail(fmt::format("{} bytes were expected, but {} are left", size, rest_.size()));
  }
  const std::string_view out = rest_.substr(0, static_cast<size_t>(size));
  rest_.remove_prefix(out.size());
  return out;
}

std::string_view ByteReader::null_terminated() {
  const size_t end = rest_.find('\0');
  if (end == std::string_view::npos) fail("the text that begins here does not end");
  const std::string_view out = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  return out;
}

void ByteReader::align(uint64_t alignment) {
  if (!std::has_single_bit(alignment)) fail("an alignment must be a power of two");
  const uint64_t past = offset() & (alignment - 1);
  if (past != 0) take(alignment - past);
}

ByteReader::Section ByteReader::section() {
  constexpr uint8_t kAligned = 0x80;
  Section out;
  const uint8_t id = byte();
  const uint64_t size = varint();
  if ((id & kAligned) != 0) align(varint());
  out.id = id & static_cast<uint8_t>(~kAligned);
  out.bytes = take(size);
  return out;
}

}  // namespace meshd::program
