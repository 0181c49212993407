// The builtin dialect of MLIR: codes are places in the lists of BuiltinDialectBytecode.td.
#include <fmt/core.h>

#include <array>

#include "service/program/bytecode/dialect_encodings.h"

namespace meshd::program {
namespace {

/// Types that are their name, by code.
std::string_view named_builtin_type(uint64_t code) {
  switch (code) {
    case 1:
      return "index";
    case 3:
      return "bf16";
    case 4:
      return "f16";
    case 5:
      return "f32";
    case 6:
      return "f64";
    case 7:
      return "f80";
    case 8:
      return "f128";
    default:
      break;
  }
  constexpr uint64_t kFirstLater = 21;
  constexpr std::array<std::string_view, 12> kLater = {"tf32",       "f8E5M2",     "f8E4M3",        "f8E4M3FN",
                                                       "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E3M4",
                                                       "f4E2M1FN",   "f6E2M3FN",   "f6E3M2FN",      "f8E8M0FNU"};
  if (code >= kFirstLater && code - kFirstLater < kLater.size()) return kLater[code - kFirstLater];
  return {};
}

/// Types that no program here has.
std::string_view foreign_builtin_type(uint64_t code) {
  switch (code) {
    case 10:
    case 11:
    case 16:
    case 17:
      return "memref";
    case 19:
    case 20:
      return "vector";
    default:
      return {};
  }
}

}  // namespace

TypeNode read_builtin_type(ByteReader& reader, const IrTables& tables) {
  using Kind = TypeNode::Kind;
  TypeNode out;
  const uint64_t code = reader.varint();
  if (const std::string_view name = named_builtin_type(code); !name.empty()) {
    out.text = name;
    return out;
  }
  switch (code) {
    case 0: {
      constexpr std::array<std::string_view, 3> kPrefixes = {"i", "si", "ui"};
      const uint64_t width = reader.varint();
      if ((width & 3) >= kPrefixes.size()) reader.fail("an integer type is signless, signed or unsigned");
      out.kind = Kind::kInteger;
      out.text = kPrefixes[width & 3];
      out.width = width >> 2;
      return out;
    }
    case 2:
      return read_type_fields(Kind::kFunction, reader, tables);
    case 9:
      return read_type_fields(Kind::kComplex, reader, tables);
    case 12:
      return read_type_fields(Kind::kNone, reader, tables);
    case 13:
      return read_type_fields(Kind::kTensor, reader, tables);
    case 14:
      return read_encoded_tensor(reader, tables);
    case 15:
      return read_type_fields(Kind::kTuple, reader, tables);
    case 18:
      return read_type_fields(Kind::kUnranked, reader, tables);
    default:
      break;
  }
  if (const std::string_view name = foreign_builtin_type(code); !name.empty())
    reader.fail("a value must be a tensor, a token or a tuple, got a " + std::string(name), "unsupported_type");
  reader.fail(fmt::format("builtin type of kind {} is not read here", code), "unsupported_type");
}

AttributeNode read_builtin_attribute(ByteReader& reader, IrTables& tables) {
  using Kind = AttributeNode::Kind;
  AttributeNode out;
  const uint64_t code = reader.varint();
  switch (code) {
    case 0:
      return read_attribute_fields(Kind::kArray, reader, tables);
    case 1:
      return read_attribute_fields(Kind::kDict, reader, tables);
    case 2:
      return read_attribute_fields(Kind::kString, reader, tables);
    case 3:  // with a type, which says nothing
      out = read_attribute_fields(Kind::kString, reader, tables);
      tables.read_type(reader);
      return out;
    case 4:
      out.kind = Kind::kSymbol;
      out.children = {tables.read_attribute(reader)};
      return out;
    case 5: {
      out.kind = Kind::kSymbol;
      out.children = {tables.read_attribute(reader)};
      for (const AttributeIndex nested : read_attributes(reader, tables)) out.children.push_back(nested);
      return out;
    }
    case 6:
      return read_attribute_fields(Kind::kType, reader, tables);
    case 7:
      return read_attribute_fields(Kind::kUnit, reader, tables);
    case 8:
      return read_attribute_fields(Kind::kInteger, reader, tables);
    case 9:
      return read_attribute_fields(Kind::kFloat, reader, tables);
    case 10:  // a call: the callee's place comes first
      out.kind = Kind::kLocations;
      out.children = {tables.read_attribute(reader), tables.read_attribute(reader)};
      return out;
    case 11:
    case 22:  // with a range: the number of its ends, then the ends
      out.kind = Kind::kPlace;
      out.children = {tables.read_attribute(reader)};
      if (code == 22 && reader.count("places") == 0) return out;
      out.bits = reader.varint();
      reader.take(reader.remaining());
      return out;
    case 12:
    case 13:
      out.kind = Kind::kLocations;
      out.children = read_attributes(reader, tables);
      if (code == 13) tables.read_attribute(reader);
      return out;
    case 14:
      out.kind = Kind::kName;
      out.children = {tables.read_attribute(reader)};
      tables.read_attribute(reader);
      return out;
    case 15:
      out.kind = Kind::kLocations;
      return out;
    case 16: {
      out.kind = Kind::kDense;
      out.type = tables.read_type(reader);
      const auto& resources = tables.file().resources();
      const uint32_t number = reader.index(resources.size(), "resource");
      if (!resources[number]) reader.fail(fmt::format("resource {} has no bytes", number));
      out.data = *resources[number];
      return out;
    }
    case 17:
      out.kind = Kind::kDenseArray;
      out.type = tables.read_type(reader);
      out.bits = reader.varint();
      out.data = reader.take(reader.varint());
      return out;
    case 18:
      return read_attribute_fields(Kind::kDense, reader, tables);
    default:
      fail_unknown_code(reader, "builtin attribute", code);
  }
}

}  // namespace meshd::program
