// The lexer of NumPy programs: Python's tokens, with indentation as tokens of its own. Pure; any thread.
//
// Example: "def f(x):\n  return -x\n" -> def f ( x ) : newline indent return - x newline dedent end
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "service/numpy/syntax/syntax.h"

namespace meshd::numpy {

enum class TokenKind : uint8_t {
  kEnd,
  kNewline,
  kIndent,
  kDedent,
  kName,      ///< text; keywords too
  kNumber,    ///< number
  kString,    ///< text: the value, escapes resolved
  kFormat,    ///< an f-string: fields, and text behind the last of them
  kOperator,  ///< text
};

/// {source:specification} of an f-string, and the text in front of it.
struct FormatField {
  std::string before;
  std::string source;
  std::string specification;
  Place place;  ///< of source
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  Number number = int64_t{0};
  Place place;
  std::vector<FormatField> fields = {};

  [[nodiscard]] bool is(std::string_view name_or_operator) const {
    return (kind == TokenKind::kName || kind == TokenKind::kOperator) && text == name_or_operator;
  }
};

/// All tokens, kEnd last. Throws program_syntax with line and column: characters that start no token, indentation that
/// fits no block, brackets and strings that do not end, numbers that do not fit; unsupported_type for bytes
/// and for parts of f-strings that are not read.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace meshd::numpy
