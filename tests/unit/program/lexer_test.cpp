// Tokens, their places, strings and their escapes.
#include "service/program/parse/lexer.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

std::vector<std::string> words(std::string_view text) {
  Lexer lexer(text);
  std::vector<std::string> out;
  for (Token token = lexer.next(); !token.is(TokenKind::kEnd); token = lexer.next()) out.emplace_back(token.text);
  return out;
}

TEST(Lexer, splits_what_mlir_splits) {
  EXPECT_EQ(
      words("%0#1 -> @\"a b\" #stablehlo.gather<x = [1]>"),
      (std::vector<std::string>{"%0", "#1", "->", "@\"a b\"", "#stablehlo.gather", "<", "x", "=", "[", "1", "]", ">"}));
  EXPECT_EQ(words("\"x\":(1)2 p0 -1.5e-3 0x7F 1e5 {-# #-}"),
            (std::vector<std::string>{"\"x\"", ":", "(", "1", ")", "2", "p0", "-", "1.5e-3", "0x7F", "1", "e5", "{-#",
                                      "#", "-", "}"}));
  EXPECT_EQ(words("^bb0(%arg_1.2-3: !stablehlo.token)"),
            (std::vector<std::string>{"^bb0", "(", "%arg_1.2-3", ":", "!stablehlo.token", ")"}));
}

TEST(Lexer, places_count_from_one_and_comments_are_skipped) {
  Lexer lexer("a // (\n\n  b\r\n\tc");
  EXPECT_EQ(lexer.next().line, 1);
  const Token b = lexer.next();
  EXPECT_EQ(b.line, 3);
  EXPECT_EQ(b.column, 3);
  const Token c = lexer.next();
  EXPECT_EQ(c.line, 4);
  EXPECT_EQ(c.column, 2);
  EXPECT_TRUE(lexer.next().is(TokenKind::kEnd));
  EXPECT_TRUE(lexer.next().is(TokenKind::kEnd));
}

TEST(Lexer, escapes_are_bytes) {
  Lexer lexer(R"("\22\C3\B6\\\n\t\"")");
  EXPECT_EQ(unescape(lexer.next()), "\"\xC3\xB6\\\n\t\"");
}

TEST(Lexer, quoted_text_unescapes_to_what_it_was) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string text = program::quoted(all);
  Lexer lexer(text);
  EXPECT_EQ(unescape(lexer.next()), all);
}

TEST(Lexer, strings_that_do_not_end_are_refused_where_they_begin) {
  EXPECT_EQ(refusal("module {\n  \"abc\n\"}"),
            "program_syntax: line 2, column 3: the string that begins here does not end on its line");
  EXPECT_EQ(refusal("module {\n  \"abc"), "program_syntax: line 2, column 3: the string that begins here does not end");
  EXPECT_EQ(refusal("module {\n  \"abc\\"),
            "program_syntax: line 2, column 3: the string that begins here does not end");
}

TEST(Lexer, unknown_characters_and_escapes_are_refused) {
  EXPECT_EQ(refusal("module ~"),
            "program_syntax: line 1, column 8: this character begins nothing that a program consists of");
  EXPECT_EQ(
      refusal("module @\"\\q\" {}"),
      "program_syntax: line 1, column 8: unknown escape in a string: expected \\n, \\t, \\\\, \\\" or two hex digits");
}

TEST(Symbols, are_quoted_where_needed) {
  EXPECT_EQ(symbol("main"), "@main");
  EXPECT_EQ(symbol("my.softmax"), "@my.softmax");
  EXPECT_EQ(symbol("call_exported_<lambda>"), "@\"call_exported_<lambda>\"");
  EXPECT_EQ(symbol("0"), "@\"0\"");
}

}  // namespace
}  // namespace meshd::program
