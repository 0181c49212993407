// Which inherent attributes ("properties") ops have in MLIR bytecode, and in which order: by name, as MLIR's generated
// code writes them. Bytecode says of an op only where its properties are, not what they are.
#pragma once

#include <string_view>

namespace meshd::program {

/// Of one op. The names of attributes are in their order with blanks between them; a `?` behind one says that it may
/// be absent, which costs a bit.
struct OpProperties {
  std::string_view op;  ///< without its dialect
  std::string_view attributes;
  bool has_segments = false;  ///< then the sizes of operand or result segments follow
};

/// Properties of "stablehlo.add" and others of func, stablehlo, chlo, sdy and of the builtin dialect, and of
/// "vhlo.add_v1". Null for ops without any.
const OpProperties* find_properties(std::string_view op);

/// Takes the first name off `attributes`; `is_optional` says whether a `?` was behind it. Empty at the end.
std::string_view next_property(std::string_view& attributes, bool& is_optional);

}  // namespace meshd::program
