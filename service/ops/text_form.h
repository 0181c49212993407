// Assembly formats (MLIR's assemblyFormat): the pretty form of an op, where that is more than operands, attributes and
// types. Rows hold it, the parser (program/parse/parser_pretty.cpp) reads it. Values only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace meshd::ops {

/// The syntax behind the `=` of a field.
enum class FieldKind : uint8_t {
  kInt,          ///< 3
  kBool,         ///< true
  kIntArray,     ///< [0, 1]
  kEnum,         ///< a word, of the enum `kind_name`
  kPrecision,    ///< [DEFAULT, HIGHEST]
  kFormat,       ///< e5m10: the attributes exponent_bits and mantissa_bits
  kBatching,     ///< [0] x [0], part of dot_dimension_numbers
  kContracting,  ///< [1] x [0], part of dot_dimension_numbers
  kAlgorithm,    ///< <lhs_precision_type = tf32, ...>
  kText,         ///< "ab,bc->ac"
};

/// One `key = value`, which becomes an attribute of the generic form.
struct TextField {
  std::string_view key;
  FieldKind kind = FieldKind::kInt;
  std::string_view attribute = {};  ///< empty where the kind implies it
  std::string_view kind_name = {};
};

/// The order of an op's parts. Beside kFields each is the syntax of the ops named.
enum class TextShape : uint8_t {
  kFields,  ///< operands and fields in any order, attributes, types
  kConstant,
  kReturn,
  kCall,
  kCustomCall,
  kCompare,
  kSlice,
  kGetTupleElement,
  kTrace,
  kConvolution,
  kTopK,
  kComposite,
  kWhile,
  kReduce,
  kScan,
  kShardingConstraint,
  kSdyCollective,
  kDataFlowEdge,
  kShardingGroup,
  kPropagationBarrier,
  kManualComputation,
  kNamedComputation,
};

/// What types behind a ':' mean when there is no '->'.
enum class TextTypes : uint8_t {
  kSame,          ///< one type: of every operand and of the result
  kEach,          ///< a type for each operand, and of the results in the same order
  kSelect,        ///< the predicate's type and the one of both choices and the result
  kComplexParts,  ///< the result's; operands are its real parts
  kTupleElements  ///< the result's; operands are its elements
};

struct TextForm {
  TextShape shape = TextShape::kFields;
  TextTypes types = TextTypes::kSame;
  std::vector<TextField> fields = {};  ///< kFields only
};

}  // namespace meshd::ops
