// VHLO, the versioned dialect of portable artifacts: its types and attributes as those of StableHLO and the builtin
// dialect that they stand for.
#include <fmt/core.h>

#include <array>
#include <bit>
#include <charconv>

#include "service/ir/float_text.h"
#include "service/program/bytecode/dialect_encodings.h"

namespace meshd::program {
namespace {

/// Types without fields, by code: signless integers are those that StableHLO calls signed.
constexpr std::array<std::string_view, 41> kVhloTypes = {"i1",
                                                         "",
                                                         "bf16",
                                                         "f16",
                                                         "f32",
                                                         "f64",
                                                         "f8E4M3FN",
                                                         "f8E5M2",
                                                         "",
                                                         "index",
                                                         "i4",
                                                         "i8",
                                                         "i16",
                                                         "i32",
                                                         "i64",
                                                         "ui4",
                                                         "ui8",
                                                         "ui16",
                                                         "ui32",
                                                         "ui64",
                                                         "",
                                                         "",
                                                         "!stablehlo.token",
                                                         "",
                                                         "",
                                                         "",
                                                         "!shape.witness",
                                                         "f8E4M3FNUZ",
                                                         "f8E5M2FNUZ",
                                                         "f8E4M3B11FNUZ",
                                                         "",
                                                         "i2",
                                                         "ui2",
                                                         "",
                                                         "tf32",
                                                         "f8E4M3",
                                                         "f8E3M4",
                                                         "f4E2M1FN",
                                                         "f6E2M3FN",
                                                         "f6E3M2FN",
                                                         "f8E8M0FNU"};

TypeNode integer_type(std::string_view name) {
  TypeNode out;
  const size_t digits = name.find_first_of("0123456789");
  out.kind = TypeNode::Kind::kInteger;
  out.text = name.substr(0, digits);
  std::from_chars(name.data() + digits, name.data() + name.size(), out.width);
  return out;
}

/// Scales and zero points of a quantised type, as text behind the types.
std::string scale_text(uint64_t scale, int64_t zero_point) {
  return ir::float_text(std::bit_cast<double>(scale)) + (zero_point == 0 ? "" : fmt::format(":{}", zero_point));
}

/// Whether stored values have a sign, and the least and largest of them.
void read_storage(ByteReader& reader, bool is_signed, TypeNode& out) {
  out.text = is_signed ? "i" : "u";
  const int64_t least = reader.signed_varint();
  const int64_t largest = reader.signed_varint();
  out.storage_range = fmt::format("<{}:{}>", least, largest);
}

TypeNode quantized_type(ByteReader& reader, IrTables& tables, bool is_per_axis) {
  TypeNode out;
  out.kind = TypeNode::Kind::kQuantized;
  const bool is_signed = (reader.varint() & 1) != 0;
  out.elements = {tables.read_type(reader), tables.read_type(reader)};
  if (!is_per_axis) {
    const auto scale = static_cast<uint64_t>(reader.signed_varint());
    out.quantized = ", " + scale_text(scale, reader.signed_varint());
    read_storage(reader, is_signed, out);
    return out;
  }
  out.quantized = fmt::format(":{}, {{", reader.varint());
  read_storage(reader, is_signed, out);
  std::vector<uint64_t> scales(reader.count("scales"));
  for (uint64_t& scale : scales) scale = static_cast<uint64_t>(reader.signed_varint());
  if (reader.count("zero points") != scales.size()) reader.fail("a quantised type has a zero point for each scale");
  for (size_t i = 0; i < scales.size(); ++i)
    out.quantized += (i ? ", " : "") + scale_text(scales[i], reader.signed_varint());
  out.quantized += "}";
  return out;
}

}  // namespace

TypeNode read_vhlo_type(ByteReader& reader, IrTables& tables) {
  using Kind = TypeNode::Kind;
  TypeNode out;
  const uint64_t code = reader.varint();
  if (code < kVhloTypes.size() && !kVhloTypes[code].empty()) {
    const std::string_view name = kVhloTypes[code];
    const bool is_integer = name != "index" && (name[0] == 'i' || name.starts_with("ui"));
    if (is_integer) return integer_type(name);
    out.text = name;
    return out;
  }
  switch (code) {
    case 1:
      return read_type_fields(Kind::kComplex, reader, tables);
    case 8:
      return read_type_fields(Kind::kFunction, reader, tables);
    case 20:
      return read_type_fields(Kind::kTensor, reader, tables);
    case 21:
      return read_encoded_tensor(reader, tables);
    case 23:
    case 42:  // a future: the tuple of what it gives
      return read_type_fields(Kind::kTuple, reader, tables);
    case 24:
    case 30:
      return quantized_type(reader, tables, code == 30);
    case 25:
      return read_type_fields(Kind::kUnranked, reader, tables);
    case 33:
      return read_type_fields(Kind::kNone, reader, tables);
    default:
      reader.fail(fmt::format("VHLO type of kind {} is not read here", code), "unsupported_type");
  }
}

AttributeNode read_vhlo_attribute(ByteReader& reader, IrTables& tables) {
  using Kind = AttributeNode::Kind;
  AttributeNode out;
  const uint64_t code = reader.varint();
  switch (code) {
    case 1:
      return read_attribute_fields(Kind::kArray, reader, tables);
    case 2:
      out.kind = Kind::kBool;
      out.bits = reader.varint();
      return out;
    case 3:
      return enum_node(reader, "stablehlo", "comparison_direction", {"EQ", "NE", "GE", "GT", "LE", "LT"});
    case 4:
      return enum_node(reader, "stablehlo", "comparison_type", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"});
    case 5:  // StableHLO's is an integer
      out.own(fmt::format("{} : i32", reader.varint()));
      return out;
    case 6:
      return read_attribute_fields(Kind::kDict, reader, tables);
    case 7:
      return enum_node(reader, "stablehlo", "fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"});
    case 8:
      return read_attribute_fields(Kind::kFloat, reader, tables);
    case 9:
      return read_attribute_fields(Kind::kInteger, reader, tables);
    case 10:
      return alias_node(reader);
    case 11:
      return enum_node(reader, "stablehlo", "precision", {"DEFAULT", "HIGH", "HIGHEST"});
    case 12:
      return enum_node(reader, "stablehlo", "rng_algorithm", {"DEFAULT", "THREE_FRY", "PHILOX"});
    case 13:
      return enum_node(reader, "stablehlo", "rng_distribution", {"", "UNIFORM", "NORMAL"});
    case 14:
      return read_attribute_fields(Kind::kString, reader, tables);
    case 15:
      return read_attribute_fields(Kind::kDense, reader, tables);
    case 16:
      return enum_node(reader, "stablehlo", "transpose", {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"});
    case 17:
      return read_attribute_fields(Kind::kType, reader, tables);
    case 18:
      return bounds_node(reader);
    case 19:
      return accuracy_mode_node(reader);
    case 20:
      return accuracy_node(reader, tables);
    case 23:
      reader.fail("replica groups by the axes of a mesh (#vhlo.replica_group_mesh_axes) are not supported",
                  "unsupported_attribute");
    default:
      fail_unknown_code(reader, "VHLO attribute", code);
  }
}

}  // namespace meshd::program
