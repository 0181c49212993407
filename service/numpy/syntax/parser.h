// The parser of NumPy programs: recursive descent over Python's grammar, as far as programs over arrays need it.
// Pure; any thread.
#pragma once

#include <string_view>

#include "service/numpy/syntax/syntax.h"

namespace meshd::numpy {

/// The syntax of a text. Throws program_syntax with line, column, what was expected and what is there; unsupported_type
/// for statements of Python that programs here do not have (class, with, try, global, yield and so on), by name.
Syntax parse_text(std::string_view text);

/// The parameters of "x, axis=None, *, dtype=None": signatures of built-in functions.
FunctionRef parse_signature(std::string_view name, std::string_view text);

}  // namespace meshd::numpy
