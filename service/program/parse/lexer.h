// The lexer: splits program text into tokens, which are views into the text with line and column. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "service/ir/program.h"

namespace meshd::program {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,          ///< stablehlo.add, dense, x
  kValue,         ///< %arg0
  kSymbol,        ///< @main, @"na me"
  kHash,          ///< #loc1, #stablehlo.gather, #0
  kBang,          ///< !stablehlo.token
  kBlock,         ///< ^bb0
  kInteger,       ///< 12, 0x7FC0
  kFloat,         ///< 1.0e-3
  kString,        ///< "text", quotes included
  kArrow,         ///< ->
  kFileMetadata,  ///< {-#
  kPunctuation,   ///< one character: ( ) { } [ ] < > , : = ? * + - / | ;
};

/// A piece of the text. `text` is as written.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  int32_t line = 1;
  int32_t column = 1;

  [[nodiscard]] bool is(char c) const { return kind == TokenKind::kPunctuation && text[0] == c; }
  [[nodiscard]] bool is(std::string_view word) const { return kind == TokenKind::kWord && text == word; }
  [[nodiscard]] bool is(TokenKind k) const { return kind == k; }
  [[nodiscard]] ir::Location location() const {
    ir::Location out;
    out.line = line;
    out.column = column;
    return out;
  }
};

/// Reads tokens one by one. Copy it to come back to a place.
class Lexer {
 public:
  explicit Lexer(std::string_view text)
      : cursor_(text.data()), end_(text.data() + text.size()), line_start_(text.data()) {}

  /// The next token; kEnd at the end, again and again. Throws program_syntax on a character that starts none and on
  /// strings and comments that do not end.
  Token next();
  /// Where the next token or white space begins.
  [[nodiscard]] const char* cursor() const { return cursor_; }
  /// Continues at `cursor`, which is ahead on the same line.
  void skip_to(const char* cursor) { cursor_ = cursor; }
  [[nodiscard]] const char* end() const { return end_; }
  /// Continues at the next '>' when only numbers, their brackets and space precede it; else returns false. Large
  /// constants are read once then, not twice.
  bool skip_numbers();

 private:
  void skip_space();
  Token number(Token token);
  Token string(Token token);
  Token prefixed(Token token, TokenKind kind);
  [[nodiscard]] Token finish(Token token, TokenKind kind, const char* stop);

  const char* cursor_;
  const char* end_;
  const char* line_start_;
  int32_t line_ = 1;
};

/// Content of a string token (quotes included): escapes \n \t \\ \" and \XX taken out. Throws program_syntax on others.
std::string unescape(const Token& token);

/// "'stablehlo.add'", or "the end of the text": how a message names what it found.
std::string describe(const Token& token);

}  // namespace meshd::program
