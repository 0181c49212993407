#include <zlib.h>

#include <algorithm>

#include "api/codecs/files/zip.h"
#include "api/codecs/files/zip_records.h"
#include "service/core/checked_math.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

using zip::put;

constexpr uint16_t kVersion = 20, kVersion64 = 45;
constexpr uint16_t kMadeOnUnix = 3 << 8;
constexpr uint64_t kRegularFile = uint64_t{0100644} << 16;
constexpr uint64_t kFirstOf1980 = 0x21;  // in the high half of the time field; files get no other time
constexpr size_t kLongestName = 0xFFFF;

uint16_t flags_of(std::string_view name, ZipMethod method) {
  const bool is_ascii =
      std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return static_cast<uint16_t>((is_ascii ? 0 : zip::kUtf8) | (method == ZipMethod::kDeflated ? zip::kSizesBehind : 0));
}

}  // namespace

uint32_t zip_crc(uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::string ZipWriter::begin(Member member) {
  if (member.name.size() > kLongestName) throw core::Error("not_acceptable", "npz: a name has more than 65,535 bytes");
  if (std::any_of(members_.begin(), members_.end(), [&](const Member& other) { return other.name == member.name; }))
    throw core::Error("not_acceptable", "npz: two members are named '" + member.name + "'");
  // Deflated bytes may be a little more than those they are made from.
  const int64_t most = member.method == ZipMethod::kStored ? member.bytes : member.bytes + member.bytes / 1000 + 1024;
  member.is_large = most >= zip64_from_;
  member.offset = offset_;
  const bool sizes_behind = member.method == ZipMethod::kDeflated;
  std::string out;
  put(out, zip::kLocal, 4);
  put(out, member.is_large ? kVersion64 : kVersion, 2);
  put(out, flags_of(member.name, member.method), 2);
  put(out, static_cast<uint16_t>(member.method), 2);
  put(out, kFirstOf1980 << 16, 4);
  put(out, member.crc, 4);
  const auto size = static_cast<uint64_t>(sizes_behind ? 0 : member.bytes);
  for (int i = 0; i < 2; ++i) put(out, member.is_large ? zip::kSee64 : size, 4);
  put(out, member.name.size(), 2);
  put(out, member.is_large ? 20 : 0, 2);
  out += member.name;
  if (member.is_large) {
    put(out, zip::kZip64Extra, 2);
    put(out, 16, 2);
    for (int i = 0; i < 2; ++i) put(out, size, 8);
  }
  offset_ = core::checked_add(offset_, static_cast<int64_t>(out.size()) + (sizes_behind ? 0 : member.bytes));
  members_.push_back(std::move(member));
  return out;
}

std::string ZipWriter::begin_stored(const std::string& name, int64_t bytes, uint32_t crc) {
  return begin({name, ZipMethod::kStored, bytes, bytes, 0, crc, false});
}

std::string ZipWriter::begin_deflated(const std::string& name, int64_t bytes) {
  return begin({name, ZipMethod::kDeflated, bytes, 0, 0, 0, false});
}

std::string ZipWriter::end_deflated(int64_t deflated_bytes, uint32_t crc) {
  Member& member = members_.back();
  member.stored_bytes = deflated_bytes;
  member.crc = crc;
  std::string out;
  put(out, zip::kDescriptor, 4);
  put(out, crc, 4);
  put(out, static_cast<uint64_t>(deflated_bytes), member.is_large ? 8 : 4);
  put(out, static_cast<uint64_t>(member.bytes), member.is_large ? 8 : 4);
  offset_ = core::checked_add(offset_, deflated_bytes + static_cast<int64_t>(out.size()));
  return out;
}

std::string ZipWriter::finish() {
  std::string out;
  for (const Member& member : members_) {
    std::string large;
    const auto field = [&](int64_t value) {
      if (value < zip64_from_) return static_cast<uint64_t>(value);
      put(large, static_cast<uint64_t>(value), 8);
      return static_cast<uint64_t>(zip::kSee64);
    };
    const uint64_t bytes = field(member.bytes), stored = field(member.stored_bytes), offset = field(member.offset);
    put(out, zip::kCentral, 4);
    put(out, kMadeOnUnix | (large.empty() ? kVersion : kVersion64), 2);
    put(out, large.empty() && !member.is_large ? kVersion : kVersion64, 2);
    put(out, flags_of(member.name, member.method), 2);
    put(out, static_cast<uint16_t>(member.method), 2);
    put(out, kFirstOf1980 << 16, 4);
    put(out, member.crc, 4);
    put(out, stored, 4);
    put(out, bytes, 4);
    put(out, member.name.size(), 2);
    put(out, large.empty() ? 0 : large.size() + 4, 2);
    put(out, 0, 6);  // comment, disk, internal attributes
    put(out, kRegularFile, 4);
    put(out, offset, 4);
    out += member.name;
    if (large.empty()) continue;
    put(out, zip::kZip64Extra, 2);
    put(out, large.size(), 2);
    out += large;
  }
  const auto size = static_cast<int64_t>(out.size());
  const auto count = static_cast<int64_t>(members_.size());
  const bool needs_64 =
      size >= zip64_from_ || offset_ >= zip64_from_ || count >= std::min<int64_t>(zip64_from_, 0xFFFF);
  if (needs_64) {
    put(out, zip::kEnd64, 4);
    put(out, 44, 8);
    put(out, kMadeOnUnix | kVersion64, 2);
    put(out, kVersion64, 2);
    put(out, 0, 8);  // disks
    put(out, static_cast<uint64_t>(count), 8);
    put(out, static_cast<uint64_t>(count), 8);
    put(out, static_cast<uint64_t>(size), 8);
    put(out, static_cast<uint64_t>(offset_), 8);
    put(out, zip::kLocator64, 4);
    put(out, 0, 4);
    put(out, static_cast<uint64_t>(offset_ + size), 8);
    put(out, 1, 4);
  }
  put(out, zip::kEnd, 4);
  put(out, 0, 4);
  for (int i = 0; i < 2; ++i) put(out, needs_64 ? zip::kSee64Short : static_cast<uint64_t>(count), 2);
  put(out, needs_64 ? zip::kSee64 : static_cast<uint64_t>(size), 4);
  put(out, needs_64 ? zip::kSee64 : static_cast<uint64_t>(offset_), 4);
  put(out, 0, 2);
  return out;
}

}  // namespace meshd::api
