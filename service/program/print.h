// Prints programs: always in the generic form, one op a line, which parses to the same program.
#pragma once

#include <string>
#include <string_view>

#include "service/ir/program.h"

namespace meshd::program {

/// The module in generic form. parse(print_generic(m)) means what m means, and printing that again gives the same text.
std::string print_generic(const ir::Module& module);

/// One attribute, as printed behind `name = `.
std::string print(const ir::Attribute& attribute);
/// {a = 1, b = "x"}; empty text for no attributes.
std::string print(const ir::AttributeList& attributes);
/// tensor<2x3xf32>
std::string print(const ir::Type& type);
/// #sdy.sharding<@mesh, [{"x"}, {?}]>; a sharding without a mesh name is printed with its mesh inlined.
std::string print(const sharding::TensorSharding& sharding);

/// "text" with quotes, backslashes and bytes outside of printable ASCII escaped as MLIR does (\22, \C3\B6).
std::string quoted(std::string_view text);
/// A name in front of `=` in a dictionary, in quotes where it needs them.
std::string attribute_name(std::string_view name);
/// @name, or @"na me" where the name needs quotes.
std::string symbol(std::string_view name);

}  // namespace meshd::program
