#include "service/program/bytecode/sdy_encoding.h"

#include "service/program/bytecode/dialect_encodings.h"

namespace meshd::program {
namespace {

/// A list of attributes behind those that are there; its length goes to the numbers.
void append_list(ByteReader& reader, const IrTables& tables, AttributeNode& out) {
  const std::vector<AttributeIndex> list = read_attributes(reader, tables);
  out.children.insert(out.children.end(), list.begin(), list.end());
  out.numbers.push_back(static_cast<int64_t>(list.size()));
}

void append_integers(ByteReader& reader, AttributeNode& out) {
  const std::vector<int64_t> list = read_integers(reader);
  out.numbers.push_back(static_cast<int64_t>(list.size()));
  out.numbers.insert(out.numbers.end(), list.begin(), list.end());
}

}  // namespace

AttributeNode read_sdy_attribute(ByteReader& reader, const IrTables& tables) {
  AttributeNode out;
  out.kind = AttributeNode::Kind::kSharding;
  out.bits = reader.varint();
  switch (static_cast<SdyCode>(out.bits)) {
    case SdyCode::kManualAxes:
    case SdyCode::kPerValue:
    case SdyCode::kUnreducedPerValue:
    case SdyCode::kTensorFactors:
    case SdyCode::kAxisList:
    case SdyCode::kAxisLists:
    case SdyCode::kAllToAllParams:
      out.children = read_attributes(reader, tables);
      return out;
    case SdyCode::kMeshAxis:
      out.text = tables.read_string(reader);
      out.numbers = {reader.signed_varint()};
      return out;
    case SdyCode::kMesh:
      out.children = read_attributes(reader, tables);
      out.numbers = read_integers(reader);
      return out;
    case SdyCode::kSubAxis:
      out.numbers = {reader.signed_varint(), reader.signed_varint()};
      return out;
    case SdyCode::kAxis:
      out.text = tables.read_string(reader);
      if (const auto sub_axis = tables.read_optional_attribute(reader)) out.children = {*sub_axis};
      return out;
    case SdyCode::kDim:
      out.children = read_attributes(reader, tables);
      out.numbers = {reader.byte() != 0 ? 1 : 0};
      if (const auto [priority, has_priority] = reader.flagged_varint(); has_priority)
        out.numbers.push_back(static_cast<int64_t>(priority));
      return out;
    case SdyCode::kSharding:
    case SdyCode::kUnreduced:
      out.children = {tables.read_attribute(reader)};
      append_list(reader, tables, out);
      append_list(reader, tables, out);
      if (static_cast<SdyCode>(out.bits) == SdyCode::kUnreduced) append_list(reader, tables, out);
      return out;
    case SdyCode::kDimFactors:
      out.numbers = read_integers(reader);
      return out;
    case SdyCode::kRule: {
      const std::vector<int64_t> sizes = read_integers(reader);
      append_list(reader, tables, out);
      append_list(reader, tables, out);
      out.numbers.push_back(static_cast<int64_t>(sizes.size()));
      out.numbers.insert(out.numbers.end(), sizes.begin(), sizes.end());
      for (int kind = 0; kind < 4; ++kind) append_integers(reader, out);
      out.numbers.push_back(reader.byte() != 0 ? 1 : 0);
      return out;
    }
    case SdyCode::kAllToAllParam:
      out.children = read_attributes(reader, tables);
      out.numbers = {reader.signed_varint(), reader.signed_varint()};
      return out;
  }
  fail_unknown_code(reader, "Shardy attribute", out.bits);
}

}  // namespace meshd::program
