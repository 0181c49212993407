// ZIP files as NumPy's .npz uses them (PKWARE APPNOTE 6.3): members stored or deflated, zip64 where sizes need it. What
// is written and read here are the records around the members' bytes. Each class: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshd::api {

enum class ZipMethod : uint16_t { kStored = 0, kDeflated = 8 };

/// CRC-32 of more bytes; begin with 0.
uint32_t zip_crc(uint32_t crc, std::span<const std::byte> bytes);

/// Gives the records of a file; the caller sends them and the members' bytes in between, in this order:
/// begin_stored() bytes begin_deflated() bytes end_deflated() ... finish(). The same members give the same file.
class ZipWriter {
 public:
  /// Sizes and offsets from `zip64_from` on are written as zip64: tests use 0.
  explicit ZipWriter(int64_t zip64_from = 0xFFFFFFFF) : zip64_from_(zip64_from) {}

  /// The record before a member's bytes. Throws not_acceptable for names over 65,535 bytes or that came already.
  std::string begin_stored(const std::string& name, int64_t bytes, uint32_t crc);
  /// The record before deflated bytes, whose sizes follow in a data descriptor; `bytes`: uncompressed.
  std::string begin_deflated(const std::string& name, int64_t bytes);
  std::string end_deflated(int64_t deflated_bytes, uint32_t crc);
  /// Everything behind the last member.
  std::string finish();

 private:
  struct Member {
    std::string name;
    ZipMethod method = ZipMethod::kStored;
    int64_t bytes = 0, stored_bytes = 0, offset = 0;
    uint32_t crc = 0;
    bool is_large = false;  ///< its own record has zip64 sizes
  };
  std::string begin(Member member);

  int64_t zip64_from_;
  int64_t offset_ = 0;
  std::vector<Member> members_;
};

/// Streaming zip reader, member by member without seeking, for uploads. Strict: members are contiguous, and the
/// directory at the end lists them all. Any fault throws malformed_body; encryption, other methods than these two and
/// several disks throw unsupported_format; a member that expands more than 200 times (after its first MiB) throws
/// body_too_large.
class ZipReader {
 public:
  /// Fills at most the span, returns how many bytes; 0 only at the end.
  using ReadSome = std::function<size_t(std::span<std::byte>)>;
  explicit ZipReader(ReadSome read);
  ~ZipReader();

  struct Member {
    std::string name;
    ZipMethod method = ZipMethod::kStored;
  };
  /// Moves to the next member; false when there is none and the file has been read and checked to its end. The member
  /// before must have been ended.
  bool next(Member& out);
  /// Fills `out` with bytes of the member; malformed_body when it has no more of them.
  void read_exactly(std::span<std::byte> out);
  /// The member's bytes are all there: checks that there are no more, its sizes and its checksum.
  void end_member();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace meshd::api
