// A cursor over the bytes of an artifact: fixed bytes, variable-width integers, strings and sections of MLIR bytecode
// (https://mlir.llvm.org/docs/BytecodeFormat/). Every read is checked against the bytes that are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "service/core/error.h"

namespace meshd::program {

/// One thread. Views the artifact, which lives longer.
class ByteReader {
 public:
  /// Reads `part`, which lies in `whole`: places are counted from the beginning of `whole`.
  ByteReader(std::string_view whole, std::string_view part) : whole_(whole), rest_(part) {}
  explicit ByteReader(std::string_view whole) : ByteReader(whole, whole) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  [[nodiscard]] size_t remaining() const { return rest_.size(); }
  /// Place of the next byte in `whole`.
  [[nodiscard]] size_t offset() const { return static_cast<size_t>(rest_.data() - whole_.data()); }
  /// A reader of bytes that were taken from this one.
  [[nodiscard]] ByteReader within(std::string_view part) const { return {whole_, part}; }

  // All of them throw program_syntax at the end of the bytes.
  uint8_t byte();
  /// An unsigned integer of 64 bits in one to nine bytes: as many zero bits at the low end of the first byte as there
  /// are bytes behind it.
  uint64_t varint();
  /// The same for signed ones: 0, -1, 1, -2, ... are 0, 1, 2, 3.
  int64_t signed_varint();
  /// A varint whose lowest bit is a flag.
  std::pair<uint64_t, bool> flagged_varint();
  /// The number of things that follow, each of which takes a byte at least.
  size_t count(std::string_view what);
  /// A varint below `size`; `what` it numbers.
  uint32_t index(size_t size, std::string_view what);
  std::string_view take(uint64_t size);
  /// Text up to a zero byte.
  std::string_view null_terminated();
  /// Skips the filling up to a multiple of `alignment` (a power of two), counted from the beginning of `whole`.
  void align(uint64_t alignment);

  struct Section {
    uint8_t id = 0;
    std::string_view bytes;
  };
  Section section();

  /// Throws "byte N of the bytecode: ...".
  [[noreturn]] void fail(const std::string& message, core::ErrorCode code = "program_syntax") const;

 private:
  std::string_view whole_;
  std::string_view rest_;
};

}  // namespace meshd::program
