// What writer and reader of ZIP files share: signatures and sizes of the records (APPNOTE 4.3), numbers in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace meshd::api::zip {

inline constexpr uint32_t kLocal = 0x04034b50;
inline constexpr uint32_t kDescriptor = 0x08074b50;
inline constexpr uint32_t kCentral = 0x02014b50;
inline constexpr uint32_t kEnd = 0x06054b50;
inline constexpr uint32_t kEnd64 = 0x06064b50;
inline constexpr uint32_t kLocator64 = 0x07064b50;
inline constexpr uint16_t kEncrypted = 1;  // flag bits
inline constexpr uint16_t kSizesBehind = 1 << 3;
inline constexpr uint16_t kUtf8 = 1 << 11;
inline constexpr uint16_t kZip64Extra = 1;
inline constexpr uint32_t kSee64 = 0xFFFFFFFF;  // in a field of 4 bytes: the zip64 field has it
inline constexpr uint16_t kSee64Short = 0xFFFF;

/// Appends `bytes` bytes of a number, little-endian.
inline void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

/// The number at `at`; the caller has checked that it is there.
inline uint64_t get(std::string_view from, size_t at, int bytes) {
  uint64_t out = 0;
  for (int i = bytes; i-- > 0;) out = out << 8 | static_cast<unsigned char>(from[at + static_cast<size_t>(i)]);
  return out;
}

}  // namespace meshd::api::zip
