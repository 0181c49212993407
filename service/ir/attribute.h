// Attributes: what an op carries beside its operands, under the names of StableHLO's generic form. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "service/ir/type.h"
#include "service/sharding/factor_rule.h"
#include "service/sharding/tensor_sharding.h"

namespace meshd::ir {

struct Attribute;
struct NamedAttribute;

using AttributeList = std::vector<NamedAttribute>;

/// The attribute `unit`, which has no value.
struct Unit {
  friend bool operator==(const Unit&, const Unit&) = default;
};

/// 3 : i64, or true. `type` is the StableHLO name of the type: "i64", "i32", "i1", "index".
struct IntegerAttr {
  int64_t value = 0;
  std::string type = "i64";
  friend bool operator==(const IntegerAttr&, const IntegerAttr&) = default;
};

/// 1.0e-3 : f32.
struct FloatAttr {
  double value = 0;
  std::string type = "f32";
  friend bool operator==(const FloatAttr&, const FloatAttr&) = default;
};

/// "text".
struct StringAttr {
  std::string value;
  friend bool operator==(const StringAttr&, const StringAttr&) = default;
};

/// dense<...> : tensor<...>. Row-major bytes of all elements, or of one when it is a splat. Bytes are shared, never
/// written.
struct DenseAttr {
  tensor::TensorType type;
  bool splat = false;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  bool is_index = false;  ///< element type was `index`, kept as int64
  friend bool operator==(const DenseAttr& a, const DenseAttr& b) {
    return a.type == b.type && a.splat == b.splat && a.is_index == b.is_index && *a.bytes == *b.bytes;
  }
};

/// array<i64: 1, 2> (also i1 for booleans), always as int64.
struct IntArrayAttr {
  std::vector<int64_t> values;
  std::string element_type = "i64";
  friend bool operator==(const IntArrayAttr&, const IntArrayAttr&) = default;
};

/// [a, b, c]
struct ArrayAttr {
  std::vector<Attribute> values;
};

/// {a = 1, b = "x"}, and dialect structs such as #stablehlo.gather<offset_dims = [1], ...>, whose `name` is
/// "stablehlo.gather".
struct DictAttr {
  std::string name;
  AttributeList entries;
};

/// #stablehlo<comparison_direction LT> and similar: kind "comparison_direction", value "LT".
struct EnumAttr {
  std::string kind;
  std::string value;
  friend bool operator==(const EnumAttr&, const EnumAttr&) = default;
};

/// @name, possibly @outer::@inner joined by "::".
struct SymbolAttr {
  std::string name;
  friend bool operator==(const SymbolAttr&, const SymbolAttr&) = default;
};

/// A type used as an attribute (function_type and similar have inputs and results).
struct TypeAttr {
  std::vector<Type> inputs;
  std::vector<Type> results;
  bool is_function = false;
  friend bool operator==(const TypeAttr&, const TypeAttr&) = default;
};

/// #sdy.sharding<...>: one sharding. #sdy.sharding_per_value<[...]>: many. Neither is canonicalised by the parser.
struct ShardingAttr {
  std::vector<sharding::TensorSharding> shardings;
  bool per_value = false;
};

/// #sdy.op_sharding_rule<...>.
struct ShardingRuleAttr {
  sharding::FactorRule rule;
};

/// Text of an attribute of a dialect we do not read; kept to print it again. Only allowed where unknown attributes are
/// ignored.
struct OpaqueAttr {
  std::string text;
  friend bool operator==(const OpaqueAttr&, const OpaqueAttr&) = default;
};

struct Attribute {
  std::variant<Unit, IntegerAttr, FloatAttr, StringAttr, DenseAttr, IntArrayAttr, ArrayAttr, DictAttr, EnumAttr,
               SymbolAttr, TypeAttr, ShardingAttr, ShardingRuleAttr, OpaqueAttr>
      value;

  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&value);
  }
};

/// name = value, an entry of an AttributeList.
struct NamedAttribute {
  std::string name;
  Attribute value;
};

/// 3 : i64, and array<i64: 1, 2>.
Attribute integer_attr(int64_t value);
Attribute int_array_attr(std::vector<int64_t> values);
/// dense<[1, 2]> : tensor<2xi64>: as many values as `dims` has elements, row-major.
DenseAttr dense_integers_attr(const std::vector<int64_t>& values, tensor::Dims dims);
/// dense<1.0> : tensor<4x8xf32>: `element` is the bytes of one element.
DenseAttr splat_attr(tensor::TensorType type, std::vector<std::byte> element);

/// The attribute of that name, or null.
const Attribute* find(const AttributeList& list, std::string_view name);

/// Gives `name` that value: replaces the entry, or adds one at the end.
void set(AttributeList& list, std::string_view name, Attribute value);

/// Integer value of `name` (integer, or boolean), or `otherwise` when absent. Throws invalid_program when it is
/// something else.
int64_t int_or(const AttributeList& list, std::string_view name, int64_t otherwise);
bool bool_or(const AttributeList& list, std::string_view name, bool otherwise);
/// Integers of `name`: array<i64: ..>, a list [1, 2], or dense integers; `otherwise` when absent.
std::vector<int64_t> ints_or(const AttributeList& list, std::string_view name, std::vector<int64_t> otherwise);
/// Same, but throws invalid_program naming the attribute when it is absent.
std::vector<int64_t> ints(const AttributeList& list, std::string_view name);
/// String or enum value of `name`, or `otherwise`.
std::string string_or(const AttributeList& list, std::string_view name, std::string otherwise);
/// Entries of a dictionary attribute; throws when absent or something else.
const DictAttr& dict(const AttributeList& list, std::string_view name);

/// All elements of a dense integer or boolean attribute as int64, splats expanded. Throws on floats.
std::vector<int64_t> dense_ints(const DenseAttr& dense);

}  // namespace meshd::ir
