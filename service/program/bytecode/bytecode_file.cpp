#include "service/program/bytecode/bytecode_file.h"

#include <fmt/core.h>

#include <array>

#include "service/program/limits.h"

namespace meshd::program {
namespace {

// Kinds of sections.
constexpr uint8_t kStringSection = 0;
constexpr uint8_t kDialectSection = 1;
constexpr uint8_t kEntrySection = 2;
constexpr uint8_t kEntryOffsetSection = 3;
constexpr uint8_t kIrSection = 4;
constexpr uint8_t kResourceSection = 5;
constexpr uint8_t kResourceOffsetSection = 6;
constexpr uint8_t kDialectVersionSection = 7;
constexpr uint8_t kPropertiesSection = 8;
constexpr std::array<std::string_view, 9> kSectionNames = {
    "strings",   "dialects",  "attributes and types", "offsets of attributes and types",
    "ops",       "resources", "resource offsets",     "dialect versions",
    "properties"};

constexpr uint8_t kBlobResource = 0;

}  // namespace

BytecodeFile::BytecodeFile(std::string_view bytes, MemoryUse& memory) : bytes_(bytes), memory_(memory) {
  ByteReader reader(bytes);
  if (reader.take(std::min(bytes.size(), kBytecodeMagic.size())) != kBytecodeMagic)
    throw core::Error("program_syntax", "the artifact does not begin with the four bytes of MLIR bytecode");
  version_ = reader.varint();
  if (version_ > bytecode_version::kNewest) {
    reader.fail(
        fmt::format(
            "version {} of MLIR bytecode is not read here, the newest is {}: write the artifact for an older version",
            version_, bytecode_version::kNewest),
        "unsupported_format");
  }
  producer_ = reader.null_terminated();
  std::array<std::optional<std::string_view>, kSectionNames.size()> sections;
  while (!reader.empty()) {
    const size_t start = reader.offset();
    const ByteReader::Section section = reader.section();
    if (section.id >= sections.size() || section.id == kDialectVersionSection || sections[section.id]) {
      ByteReader(bytes, bytes.substr(start)).fail(fmt::format("section {} is not expected here", section.id));
    }
    sections[section.id] = section.bytes;
  }
  const auto required = [&](uint8_t id) {
    if (!sections[id]) reader.fail("the section of " + std::string(kSectionNames[id]) + " is missing");
    return ByteReader(bytes, *sections[id]);
  };
  read_strings(required(kStringSection));
  if (sections[kPropertiesSection]) read_properties(required(kPropertiesSection));
  read_dialects(required(kDialectSection));
  if (sections[kResourceSection] && sections[kResourceOffsetSection])
    read_resources(required(kResourceOffsetSection), required(kResourceSection));
  required(kEntrySection);
  read_entries(required(kEntryOffsetSection), *sections[kEntrySection]);
  required(kIrSection);
  ir_ = *sections[kIrSection];
}

size_t BytecodeFile::table_size(ByteReader& reader, std::string_view what, size_t entry_bytes) {
  const size_t out = reader.count(what);
  if (static_cast<int64_t>(out) > kMaxAttributes) reader.fail("there are too many " + std::string(what));
  memory_.take(out * entry_bytes);
  return out;
}

void BytecodeFile::read_strings(ByteReader reader) {
  std::vector<uint64_t> sizes(table_size(reader, "strings", sizeof(std::string_view) + sizeof(uint64_t)));
  for (uint64_t& size : sizes) size = reader.varint();
  // Sizes are those of the last string first, and count the zero byte at the end of each.
  strings_.reserve(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    const std::string_view text = reader.take(sizes[i]);
    if (text.empty() || text.back() != '\0') reader.fail("the string that ends here does not end with a zero byte");
    strings_.push_back(text.substr(0, text.size() - 1));
  }
  if (!reader.empty()) reader.fail("bytes are left behind the strings");
}

void BytecodeFile::read_dialects(ByteReader reader) {
  const size_t count = table_size(reader, "dialects", sizeof(std::string_view));
  for (size_t i = 0; i < count; ++i) {
    if (version_ < bytecode_version::kDialectVersions) {
      dialects_.push_back(string(reader));
      continue;
    }
    const auto [number, has_version] = reader.flagged_varint();
    if (number >= strings_.size()) reader.fail(fmt::format("there is no string {}", number));
    dialects_.push_back(strings_[number]);
    if (has_version && reader.section().id != kDialectVersionSection)
      reader.fail("the version of a dialect is expected");
  }
  if (version_ >= bytecode_version::kShortBlockArguments) reader.count("names of ops");
  while (!reader.empty()) {
    const uint32_t dialect = reader.index(dialects_.size(), "dialect");
    const size_t names = reader.count("names of ops");
    for (size_t i = 0; i < names; ++i) {
      BytecodeOpName op;
      std::string_view name;
      if (version_ < bytecode_version::kProperties) {
        name = string(reader);
      } else {
        const auto [number, is_registered] = reader.flagged_varint();
        if (number >= strings_.size()) reader.fail(fmt::format("there is no string {}", number));
        name = strings_[number];
        op.is_registered = is_registered;
      }
      memory_.take(sizeof(op) + dialects_[dialect].size() + name.size() + 1);
      op.name = std::string(dialects_[dialect]).append(".").append(name);
      ops_.push_back(std::move(op));
      if (static_cast<int64_t>(ops_.size()) > kMaxAttributes) reader.fail("there are too many names of ops");
    }
  }
}

void BytecodeFile::read_entries(ByteReader offsets, std::string_view data) {
  ByteReader entries = offsets.within(data);
  const size_t attributes = table_size(offsets, "attributes", sizeof(EncodedEntry));
  const size_t types = table_size(offsets, "types", sizeof(EncodedEntry));
  const auto read = [&](std::vector<EncodedEntry>& table, size_t count) {
    table.reserve(count);
    while (table.size() < count) {
      const uint32_t dialect = offsets.index(dialects_.size(), "dialect");
      const uint64_t group = offsets.varint();
      if (group == 0 || group > count - table.size()) offsets.fail("a group of attributes or types has a wrong size");
      for (uint64_t i = 0; i < group; ++i) {
        const auto [size, is_custom] = offsets.flagged_varint();
        table.push_back({entries.take(size), dialect, is_custom});
      }
    }
  };
  read(attributes_, attributes);
  read(types_, types);
  if (!offsets.empty()) offsets.fail("bytes are left behind the offsets of attributes and types");
}

void BytecodeFile::read_properties(ByteReader reader) {
  const size_t count = table_size(reader, "properties", sizeof(std::string_view));
  properties_.reserve(count);
  for (size_t i = 0; i < count; ++i) properties_.push_back(reader.take(reader.varint()));
  if (!reader.empty()) reader.fail("bytes are left behind the properties");
}

void BytecodeFile::read_resources(ByteReader offsets, ByteReader data) {
  const auto group = [&](bool is_dialect) {
    const size_t count = table_size(offsets, "resources", sizeof(resources_[0]));
    for (size_t i = 0; i < count; ++i) {
      string(offsets);
      const std::string_view bytes = data.take(offsets.varint());
      const uint8_t kind = offsets.byte();
      if (!is_dialect) continue;
      std::optional<std::string_view>& blob = resources_.emplace_back();
      if (bytes.empty() || kind != kBlobResource) continue;
      ByteReader value = data.within(bytes);
      const uint64_t alignment = value.varint();
      const uint64_t size = value.varint();
      value.align(alignment);
      blob = value.take(size);
    }
  };
  const size_t external = offsets.count("groups of resources");
  for (size_t i = 0; i < external; ++i) {
    string(offsets);
    group(false);
  }
  while (!offsets.empty()) {
    offsets.index(dialects_.size(), "dialect");
    group(true);
  }
}

}  // namespace meshd::program
