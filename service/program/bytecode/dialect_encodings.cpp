#include "service/program/bytecode/dialect_encodings.h"

#include <fmt/core.h>

#include <algorithm>

namespace meshd::program {

void fail_unknown_code(const ByteReader& reader, std::string_view what, uint64_t code) {
  reader.fail(fmt::format("{} of kind {} is not read here", what, code), "unsupported_attribute");
}

std::vector<int64_t> read_integers(ByteReader& reader) {
  std::vector<int64_t> out(reader.count("integers"));
  for (int64_t& value : out) value = reader.signed_varint();
  return out;
}

std::vector<TypeIndex> read_types(ByteReader& reader, const IrTables& tables) {
  std::vector<TypeIndex> out(reader.count("types"));
  for (TypeIndex& type : out) type = tables.read_type(reader);
  return out;
}

std::vector<AttributeIndex> read_attributes(ByteReader& reader, const IrTables& tables) {
  std::vector<AttributeIndex> out(reader.count("attributes"));
  for (AttributeIndex& attribute : out) attribute = tables.read_attribute(reader);
  return out;
}

TypeNode read_type_fields(TypeNode::Kind kind, ByteReader& reader, const IrTables& tables) {
  using Kind = TypeNode::Kind;
  TypeNode out;
  out.kind = kind;
  switch (kind) {
    case Kind::kFunction:
      out.elements = read_types(reader, tables);
      out.input_count = out.elements.size();
      for (const TypeIndex result : read_types(reader, tables)) out.elements.push_back(result);
      break;
    case Kind::kTuple:
      out.elements = read_types(reader, tables);
      break;
    case Kind::kTensor:
      out.dims = read_integers(reader);
      [[fallthrough]];
    case Kind::kComplex:
    case Kind::kUnranked:
      out.elements = {tables.read_type(reader)};
      break;
    default:  // kNone has no fields
      break;
  }
  return out;
}

TypeNode read_encoded_tensor(ByteReader& reader, const IrTables& tables) {
  const AttributeIndex encoding = tables.read_attribute(reader);
  TypeNode out = read_type_fields(TypeNode::Kind::kTensor, reader, tables);
  out.encoding = encoding;
  return out;
}

AttributeNode read_attribute_fields(AttributeNode::Kind kind, ByteReader& reader, IrTables& tables) {
  using Kind = AttributeNode::Kind;
  AttributeNode out;
  out.kind = kind;
  switch (kind) {
    case Kind::kArray:
      out.children = read_attributes(reader, tables);
      break;
    case Kind::kDict: {
      const size_t count = reader.count("entries");
      for (size_t i = 0; i < 2 * count; ++i) out.children.push_back(tables.read_attribute(reader));
      break;
    }
    case Kind::kString:
      out.text = tables.read_string(reader);
      break;
    case Kind::kType:
      out.type = tables.read_type(reader);
      break;
    case Kind::kInteger:
    case Kind::kFloat:
      out.type = tables.read_type(reader);
      out.bits = tables.read_number(reader, out.type);
      break;
    case Kind::kDense:
      out.type = tables.read_type(reader);
      out.data = reader.take(reader.varint());
      break;
    default:  // kUnit has no fields
      break;
  }
  return out;
}

AttributeNode enum_node(ByteReader& reader, std::string_view dialect, std::string_view kind,
                        std::initializer_list<std::string_view> words) {
  const uint64_t value = reader.varint();
  if (value >= words.size() || (words.begin() + value)->empty())
    reader.fail(fmt::format("'{}' has no value {}", kind, value));
  AttributeNode out;
  out.own("#" + std::string(dialect) + "<" + std::string(kind) + " " + std::string(*(words.begin() + value)) + ">");
  return out;
}

StructText& StructText::field(std::string_view name, std::string_view value) {
  text_.append(is_first_ ? "" : ", ").append(name).append(" = ").append(value);
  is_first_ = false;
  return *this;
}

StructText& StructText::any_list(std::string_view name, const std::vector<int64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", values[i]);
  return field(name, text + "]");
}

StructText& StructText::list(std::string_view name, const std::vector<int64_t>& values) {
  return values.empty() ? *this : any_list(name, values);
}

}  // namespace meshd::program
