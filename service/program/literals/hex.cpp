#include "service/program/literals/hex.h"

#include <array>

namespace meshd::program {
namespace {

constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> make_digits() {
  std::array<uint8_t, 256> out{};
  for (uint8_t& digit : out) digit = kNoDigit;
  for (uint8_t i = 0; i < 10; ++i) out[static_cast<size_t>('0' + i)] = i;
  for (uint8_t i = 0; i < 6; ++i) {
    out[static_cast<size_t>('a' + i)] = static_cast<uint8_t>(10 + i);
    out[static_cast<size_t>('A' + i)] = static_cast<uint8_t>(10 + i);
  }
  return out;
}

constexpr std::array<uint8_t, 256> kDigits = make_digits();

}  // namespace

bool decode_hex(std::string_view text, std::vector<std::byte>& out) {
  if (text.size() < 2 || text.size() % 2 != 0 || text[0] != '0' || text[1] != 'x') return false;
  const size_t count = text.size() / 2 - 1;
  out.resize(count);
  const auto* in = reinterpret_cast<const unsigned char*>(text.data()) + 2;
  uint8_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t high = kDigits[in[2 * i]];
    const uint8_t low = kDigits[in[2 * i + 1]];
    seen |= high | low;
    out[i] = static_cast<std::byte>(high << 4 | low);
  }
  return (seen & 0xF0) == 0;
}

void extend_narrow(tensor::DType dtype, std::span<std::byte> bytes) {
  const int bits = tensor::row(dtype).bits;
  if (bits >= 8) return;
  const int mask = (1 << bits) - 1;
  const int sign = tensor::is_signed_integer(dtype) ? 1 << (bits - 1) : 0;
  for (std::byte& value : bytes) {
    const int low = std::to_integer<int>(value) & mask;
    value = static_cast<std::byte>((low & sign) != 0 ? low | ~mask : low);
  }
}

bool adopt_stored_bytes(const tensor::TensorType& type, int64_t count, std::vector<std::byte>& bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t element = tensor::size_bytes(type.dtype);
  if (type.dtype == tensor::DType::kBool) {
    if (size != count && count > 1 && size == core::ceil_div(count, 8)) {
      std::vector<std::byte> wide(static_cast<size_t>(count));
      for (size_t i = 0; i < wide.size(); ++i) wide[i] = (bytes[i / 8] >> (i % 8)) & std::byte{1};
      // One byte of ones or zeros is a splat, in either interpretation.
      if (size == 1 && (bytes[0] == std::byte{0xFF} || bytes[0] == std::byte{0})) wide.resize(1);
      bytes = std::move(wide);
    }
    for (std::byte& value : bytes) value = value == std::byte{0} ? std::byte{0} : std::byte{1};
  } else {
    extend_narrow(type.dtype, bytes);  // MLIR fills the rest of the byte with zeros
  }
  return static_cast<int64_t>(bytes.size()) == element && count != 1;
}

std::string encode_hex(const std::vector<std::byte>& bytes) {
  constexpr std::string_view kUpper = "0123456789ABCDEF";
  std::string out = "0x";
  out.reserve(2 + 2 * bytes.size());
  for (const std::byte value : bytes) {
    out += kUpper[std::to_integer<size_t>(value >> 4)];
    out += kUpper[std::to_integer<size_t>(value & std::byte{0xF})];
  }
  return out;
}

}  // namespace meshd::program
