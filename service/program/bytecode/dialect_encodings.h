// How dialects encode their types and attributes in MLIR bytecode: a code, then fields. One file for each dialect.
#pragma once

#include <string_view>

#include "service/program/bytecode/ir_tables.h"

namespace meshd::program {

/// Of BuiltinDialectBytecode.td of MLIR.
TypeNode read_builtin_type(ByteReader& reader, const IrTables& tables);
AttributeNode read_builtin_attribute(ByteReader& reader, IrTables& tables);

/// Of VhloBytecode.cpp of StableHLO.
TypeNode read_vhlo_type(ByteReader& reader, IrTables& tables);
AttributeNode read_vhlo_attribute(ByteReader& reader, IrTables& tables);

/// Of StablehloBytecode.cpp, and ChloBytecode.cpp, of StableHLO.
TypeNode read_stablehlo_type(ByteReader& reader, const IrTables& tables);
AttributeNode read_stablehlo_attribute(ByteReader& reader, IrTables& tables);
AttributeNode read_chlo_attribute(ByteReader& reader, IrTables& tables);
/// #stablehlo.result_accuracy<...>, which StableHLO and VHLO encode in one way.
AttributeNode accuracy_node(ByteReader& reader, const IrTables& tables);
/// #stablehlo.result_accuracy_mode<...>
AttributeNode accuracy_mode_node(ByteReader& reader);
/// #stablehlo.bounds<...>
AttributeNode bounds_node(ByteReader& reader);
/// #stablehlo.output_operand_alias<...>
AttributeNode alias_node(ByteReader& reader);

/// Of bytecode.td of Shardy.
AttributeNode read_sdy_attribute(ByteReader& reader, const IrTables& tables);

/// The fields that follow the code of a function, a complex, tensor, tuple, unranked or none type: the builtin dialect
/// and VHLO have other codes for them and the same fields.
TypeNode read_type_fields(TypeNode::Kind kind, ByteReader& reader, const IrTables& tables);
/// The same of a tensor with an encoding, which comes first.
TypeNode read_encoded_tensor(ByteReader& reader, const IrTables& tables);
/// The fields of an array, a dictionary, a string, an integer, a float, a type or a dense attribute, alike.
AttributeNode read_attribute_fields(AttributeNode::Kind kind, ByteReader& reader, IrTables& tables);

/// A code without an encoding.
[[noreturn]] void fail_unknown_code(const ByteReader& reader, std::string_view what, uint64_t code);

/// A list of signed integers behind its length.
std::vector<int64_t> read_integers(ByteReader& reader);
/// A list of types, or of attributes, behind its length.
std::vector<TypeIndex> read_types(ByteReader& reader, const IrTables& tables);
std::vector<AttributeIndex> read_attributes(ByteReader& reader, const IrTables& tables);

/// #stablehlo<precision HIGH>: `words` are the values of the enum from 0, empty ones are no values.
AttributeNode enum_node(ByteReader& reader, std::string_view dialect, std::string_view kind,
                        std::initializer_list<std::string_view> words);

/// #stablehlo.dot<lhs_batching_dimensions = [0], ...>, field by field: empty lists and zeros that MLIR leaves out are
/// left out.
class StructText {
 public:
  explicit StructText(std::string_view name, std::string_view before = {})
      : text_("#stablehlo." + std::string(name) + "<" + std::string(before)) {}
  StructText& list(std::string_view name, const std::vector<int64_t>& values);
  /// The same where empty lists are written.
  StructText& any_list(std::string_view name, const std::vector<int64_t>& values);
  StructText& field(std::string_view name, std::string_view value);
  StructText& number(std::string_view name, int64_t value) { return field(name, std::to_string(value)); }
  StructText& unless_zero(std::string_view name, int64_t value) { return value == 0 ? *this : number(name, value); }
  [[nodiscard]] std::string text() && { return std::move(text_) + ">"; }

 private:
  std::string text_;
  bool is_first_ = true;
};

}  // namespace meshd::program
