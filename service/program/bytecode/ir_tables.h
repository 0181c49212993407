// Types and attributes of a bytecode file, decoded one by one when they are first asked for, and printed as text. A
// node has the numbers of the nodes within it, so that decoding never recurs; printing does, to a bounded depth, which
// is where a cycle ends.
//
// VHLO's types and attributes decode to the nodes of the builtin ones that they stand for: what is behind this page
// knows no versions of types.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/program/bytecode/bytecode_file.h"
#include "service/program/bytecode/text_writer.h"

namespace meshd::program {

/// Number of a type or an attribute in its table.
using TypeIndex = uint32_t;
using AttributeIndex = uint32_t;

struct TypeNode {
  enum class Kind : uint8_t { kInteger, kNamed, kNone, kComplex, kTensor, kUnranked, kTuple, kFunction, kQuantized };
  Kind kind = Kind::kNamed;
  std::string_view text;                   ///< kNamed: "f32", "index", "!stablehlo.token"; kInteger: "i", "si" or "ui"
  uint64_t width = 0;                      ///< kInteger
  std::vector<int64_t> dims;               ///< kTensor
  std::vector<TypeIndex> elements;         ///< element types; kFunction: inputs, then results
  size_t input_count = 0;                  ///< kFunction
  std::optional<AttributeIndex> encoding;  ///< kTensor
  std::string storage_range;               ///< kQuantized: "<-127:127>"; `text` is "i" or "u"
  std::string quantized;                   ///< kQuantized: behind "!quant.uniform<storage:expressed"
};

struct AttributeNode {
  enum class Kind : uint8_t {
    kText,  ///< `text`, `children` between commas, `data`
    kString,
    kSymbol,  ///< `text`, then the symbols `children` within it
    kUnit,
    kBool,
    kInteger,  ///< `bits`, sign-extended
    kFloat,    ///< `bits`
    kArray,
    kDict,  ///< names and values in turn; names are strings
    kType,
    kDense,       ///< `data` of tensor type `type`
    kDenseArray,  ///< `bits` elements of type `type` in `data`
    kName,        ///< a location with a name, the string `children[0]`
    kPlace,       ///< a location in the file `children[0]`, at line `bits`
    kLocations,   ///< a location made of `children`
    kSharding,    ///< an attribute of Shardy; `bits` is its code, and printing knows what is in it
  };
  Kind kind = Kind::kText;
  std::string_view text;  ///< in the file, in `owned`, or of static lifetime
  std::unique_ptr<const std::string> owned;
  TypeIndex type = 0;
  uint64_t bits = 0;
  std::string_view data;
  std::vector<AttributeIndex> children;
  std::vector<int64_t> numbers;  ///< kSharding

  void own(std::string made) {
    owned = std::make_unique<const std::string>(std::move(made));
    text = *owned;
  }
};

/// One thread.
class IrTables {
 public:
  IrTables(const BytecodeFile& file, MemoryUse& memory);

  [[nodiscard]] const BytecodeFile& file() const { return file_; }
  /// The node of this number, which is in the table. Throws program_syntax, unsupported_type, unsupported_attribute.
  const TypeNode& type(TypeIndex index);
  const AttributeNode& attribute(AttributeIndex index);

  // Numbers that a reader is at.
  TypeIndex read_type(ByteReader& reader) const { return reader.index(types_.size(), "type"); }
  AttributeIndex read_attribute(ByteReader& reader) const { return reader.index(attributes_.size(), "attribute"); }
  /// Nothing where the flag says that there is none.
  std::optional<AttributeIndex> read_optional_attribute(ByteReader& reader) const;
  std::string_view read_string(ByteReader& reader) const {
    return file_.strings()[reader.index(file_.strings().size(), "string")];
  }
  /// Bits of an integer or a float of this type; integers are sign-extended.
  uint64_t read_number(ByteReader& reader, TypeIndex type);

  void print_type(TypeIndex index, TextWriter& out) { print_type(index, out, 0); }
  void print_attribute(AttributeIndex index, TextWriter& out) { print_attribute(index, out, 0); }
  /// (tensor<2xf32>, ...) and the same without parentheses for one.
  void print_types(const std::vector<TypeIndex>& types, TextWriter& out);
  void print_results(const std::vector<TypeIndex>& types, TextWriter& out);
  /// `name = value`, or the name alone of a unit.
  void print_entry(std::string_view name, AttributeIndex value, TextWriter& out);

  /// The integers of a dense attribute of i64; nothing where it is something else.
  std::optional<std::vector<int64_t>> dense_integers(AttributeIndex index);
  /// Name of a location, for messages: JAX's, or "file:line"; empty where there is none.
  std::string location_name(AttributeIndex index) { return location_name(index, 0); }

 private:
  void print_type(TypeIndex index, TextWriter& out, int depth);
  void print_attribute(AttributeIndex index, TextWriter& out, int depth);
  void print_dense(const AttributeNode& node, TextWriter& out, int depth);
  void print_dense_array(const AttributeNode& node, TextWriter& out);
  friend class ShardingPrinter;
  std::string location_name(AttributeIndex index, int depth);

  const BytecodeFile& file_;
  MemoryUse& memory_;
  std::vector<std::unique_ptr<const TypeNode>> types_;
  std::vector<std::unique_ptr<const AttributeNode>> attributes_;
  int64_t locations_visited_ = 0;
};

}  // namespace meshd::program
