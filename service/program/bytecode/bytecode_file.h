// The tables of a bytecode file: strings, dialects, names of ops, where attributes, types and properties are encoded,
// and the section with the ops. Nothing is decoded here but the tables themselves; all of it views the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/program/bytecode/byte_reader.h"
#include "service/program/bytecode/memory_use.h"

namespace meshd::program {

/// The first bytes of MLIR bytecode.
inline constexpr std::string_view kBytecodeMagic = "ML\xefR";

/// Versions of the format in which something changed.
namespace bytecode_version {
inline constexpr uint64_t kDialectVersions = 1;
inline constexpr uint64_t kRegionSections = 2;  ///< regions that see nothing from above are sections of their own
inline constexpr uint64_t kUseListOrders = 3;
inline constexpr uint64_t kShortBlockArguments = 4;
inline constexpr uint64_t kProperties = 5;
inline constexpr uint64_t kSegmentSizes = 6;  ///< properties with sizes of operand segments as sparse arrays
inline constexpr uint64_t kNewest = 6;
}  // namespace bytecode_version

/// Where an attribute or a type is.
struct EncodedEntry {
  std::string_view bytes;
  uint32_t dialect = 0;
  bool is_custom = false;  ///< in the dialect's own encoding, else as text
};

/// An op's name, and its dialect's.
struct BytecodeOpName {
  std::string name;  ///< "stablehlo.add"
  bool is_registered = true;
};

/// Immutable. Any thread.
class BytecodeFile {
 public:
  /// Reads the tables. Throws program_syntax with the place, unsupported_format for versions that are not read.
  BytecodeFile(std::string_view bytes, MemoryUse& memory);

  [[nodiscard]] uint64_t version() const { return version_; }
  [[nodiscard]] std::string_view producer() const { return producer_; }
  [[nodiscard]] const std::vector<std::string_view>& strings() const { return strings_; }
  [[nodiscard]] const std::vector<std::string_view>& dialects() const { return dialects_; }
  [[nodiscard]] const std::vector<BytecodeOpName>& ops() const { return ops_; }
  [[nodiscard]] const std::vector<EncodedEntry>& attributes() const { return attributes_; }
  [[nodiscard]] const std::vector<EncodedEntry>& types() const { return types_; }
  [[nodiscard]] const std::vector<std::string_view>& properties() const { return properties_; }
  /// Blobs of dialects, in the order in which attributes number them; nothing: only declared.
  [[nodiscard]] const std::vector<std::optional<std::string_view>>& resources() const { return resources_; }
  /// The section with the ops.
  [[nodiscard]] ByteReader ir() const { return reader(ir_); }
  [[nodiscard]] ByteReader reader(std::string_view part) const { return {bytes_, part}; }

 private:
  void read_strings(ByteReader reader);
  void read_dialects(ByteReader reader);
  void read_entries(ByteReader offsets, std::string_view data);
  void read_properties(ByteReader reader);
  void read_resources(ByteReader offsets, ByteReader data);
  /// A number of entries of a table, each of `entry_bytes` in memory.
  size_t table_size(ByteReader& reader, std::string_view what, size_t entry_bytes);
  std::string_view string(ByteReader& reader) { return strings_[reader.index(strings_.size(), "string")]; }

  std::string_view bytes_;
  MemoryUse& memory_;
  uint64_t version_ = 0;
  std::string_view producer_;
  std::string_view ir_;
  std::vector<std::string_view> strings_;
  std::vector<std::string_view> dialects_;
  std::vector<BytecodeOpName> ops_;
  std::vector<EncodedEntry> attributes_;
  std::vector<EncodedEntry> types_;
  std::vector<std::string_view> properties_;
  std::vector<std::optional<std::string_view>> resources_;
};

}  // namespace meshd::program
