// Lexer and parser: tokens, structure, and errors with line, column and what was expected.
#include <gtest/gtest.h>

#include <string>

#include "service/core/error.h"
#include "service/numpy/syntax/lexer.h"
#include "service/numpy/syntax/mistakes.h"
#include "service/numpy/syntax/parser.h"

namespace meshd::numpy {
namespace {

std::string tokens_text(std::string_view text) {
  std::string out;
  for (const Token& token : tokens_of(text)) {
    if (!out.empty()) out += ' ';
    switch (token.kind) {
      case TokenKind::kEnd:
        out += "$";
        break;
      case TokenKind::kNewline:
        out += "/";
        break;
      case TokenKind::kIndent:
        out += ">";
        break;
      case TokenKind::kDedent:
        out += "<";
        break;
      case TokenKind::kString:
        out += "'" + token.text + "'";
        break;
      default:
        out += token.text;
    }
  }
  return out;
}

// (a + (b * c)): an expression with all its brackets.
std::string shown(const Expression& e) {
  const auto child = [&](size_t i) { return e.children[i] == nullptr ? std::string() : shown(*e.children[i]); };
  switch (e.kind) {
    case ExpressionKind::kUnary:
      return "(" + e.text + child(0) + ")";
    case ExpressionKind::kBinary:
    case ExpressionKind::kBool:
      return "(" + child(0) + " " + e.text + " " + child(1) + ")";
    case ExpressionKind::kCompare: {
      std::string out = "(" + child(0);
      for (size_t i = 0; i < e.names.size(); ++i) out += " " + e.names[i] + " " + child(i + 1);
      return out + ")";
    }
    case ExpressionKind::kConditional:
      return "(" + child(1) + " if " + child(0) + " else " + child(2) + ")";
    case ExpressionKind::kAttribute:
      return child(0) + "." + e.text;
    case ExpressionKind::kSubscript:
      return child(0) + "[" + child(1) + "]";
    case ExpressionKind::kSlice:
      return child(0) + ":" + child(1) + ":" + child(2);
    case ExpressionKind::kCall: {
      std::string out = child(0) + "(";
      for (size_t i = 0; i < e.names.size(); ++i)
        out += (i > 0 ? "," : "") + e.names[i] + (e.names[i].empty() ? "" : "=") + child(i + 1);
      return out + ")";
    }
    case ExpressionKind::kTuple:
    case ExpressionKind::kList: {
      std::string out = e.kind == ExpressionKind::kTuple ? "(" : "[";
      for (size_t i = 0; i < e.children.size(); ++i) out += (i > 0 ? "," : "") + child(i);
      return out + (e.kind == ExpressionKind::kTuple ? ")" : "]");
    }
    case ExpressionKind::kStarred:
      return "*" + child(0);
    default:
      return e.text;
  }
}

std::string parsed(const std::string& text) {
  const Syntax syntax = parse_text(text);
  return shown(*syntax.body.at(0).value);
}

struct Refusal {
  std::string code, detail;
  int line = 0, column = 0;
};
Refusal refused(const std::string& text) {
  try {
    parse_text(text);
  } catch (const core::Error& error) {
    const core::Diagnostic& place = error.diagnostics().at(0);
    EXPECT_EQ(place.pointer, "") << "who read the request knows where the text stands";
    return {std::string(error.code().word()), error.detail(), place.line, place.column};
  }
  return {};
}

TEST(LexerTest, indentation_makes_tokens) {
  EXPECT_EQ(tokens_text("def f(x):\n  y = x # note\n\n  return -y\nz = 1\n"),
            "def f ( x ) : / > y = x / return - y / < z = 1 / $");
}

TEST(LexerTest, brackets_and_backslashes_continue_lines) {
  EXPECT_EQ(tokens_text("x = (1,\n     2)\ny = 1 + \\\n 2"), "x = ( 1 , 2 ) / y = 1 + 2 / $");
}

TEST(LexerTest, longest_operators_win) { EXPECT_EQ(tokens_text("a**=b//c<<d!=e@f"), "a **= b // c << d != e @ f / $"); }

TEST(LexerTest, strings_have_their_escapes) {
  EXPECT_EQ(tokens_text(R"('a\'b' "c\\" r'\n' """d"e""")"), R"('a'b' 'c\' '\n' 'd"e' / $)");
}

TEST(LexerTest, numbers_have_their_kinds) {
  const auto number = [](const char* text) { return tokens_of(text).at(0).number; };
  EXPECT_EQ(std::get<int64_t>(number("0xFF_00")), 0xFF00);
  EXPECT_EQ(std::get<int64_t>(number("1_000")), 1000);
  EXPECT_EQ(std::get<double>(number("1.5e-3")), 1.5e-3);
  EXPECT_EQ(std::get<double>(number(".5")), 0.5);
  EXPECT_EQ(std::get<std::complex<double>>(number("2j")), std::complex<double>(0, 2));
}

TEST(ParserTest, operators_bind_as_in_python) {
  EXPECT_EQ(parsed("a + b * c ** -d ** e"), "(a + (b * (c ** (-(d ** e)))))");
  EXPECT_EQ(parsed("-a ** 2"), "(-(a ** 2))");
  EXPECT_EQ(parsed("a - b - c @ d"), "((a - b) - (c @ d))");
  EXPECT_EQ(parsed("a & b == c | d"), "((a & b) == (c | d))");
  EXPECT_EQ(parsed("not a or b and c"), "((nota) or (b and c))");
  EXPECT_EQ(parsed("a < b <= c"), "(a < b <= c)");
  EXPECT_EQ(parsed("a if b else c if d else e"), "(a if b else (c if d else e))");
}

TEST(ParserTest, calls_and_subscripts) {
  EXPECT_EQ(parsed("f(a, *b, c=d)(e).g[1:, ::2, ...]"), "f(a,*=b,c=d)(e).g[(1::,::2,...)]");
  EXPECT_EQ(parsed("x[i]"), "x[i]");
  EXPECT_EQ(parsed("x[i,]"), "x[(i)]");
  EXPECT_EQ(parsed("(a, [b, *c], ())"), "(a,[b,*c],())");
}

TEST(ParserTest, errors_say_place_and_expectation) {
  const Refusal colon = refused("def f(x)\n  return x");
  EXPECT_EQ(colon.code, "program_syntax");
  EXPECT_EQ(colon.line, 1);
  EXPECT_EQ(colon.column, 9);
  EXPECT_NE(colon.detail.find("expected ':' at the head of a def, got the end of the line"), std::string::npos)
      << colon.detail;
  EXPECT_NE(refused("x = (1").detail.find("'(' is not closed"), std::string::npos);
  EXPECT_NE(refused("if x:\n    y\n  z").detail.find("fits no block"), std::string::npos);
  EXPECT_NE(refused("x = 'abc").detail.find("does not end"), std::string::npos);
  EXPECT_NE(refused("x = 99999999999999999999").detail.find("63 bits"), std::string::npos);
  EXPECT_NE(refused("f(a=1, 2)").detail.find("behind one with a name"), std::string::npos);
  EXPECT_NE(refused("1 = x").detail.find("nothing can be assigned"), std::string::npos);
  EXPECT_EQ(refused("with a: pass").code, "unsupported_type");
  EXPECT_EQ(refused("x = f'{a!r}'").code, "unsupported_type");
  EXPECT_EQ(refused("x = $").line, 1);
}

TEST(ParserTest, depth_is_bounded) {
  const std::string deep(5000, '(');
  EXPECT_EQ(refused("x = " + deep).code, "program_syntax");
  std::string chain = "x = a";
  for (int i = 0; i < 5000; ++i) chain += " + a";
  EXPECT_NE(refused(chain).detail.find("nested more than"), std::string::npos);
  EXPECT_EQ(refused("x = " + std::string(5000, '-') + "a").code, "program_syntax");
  std::string ifs = "if a: pass\n";
  for (int i = 0; i < 5000; ++i) ifs += "elif a: pass\n";
  EXPECT_EQ(refused(ifs).code, "program_syntax");
  std::string lambdas = "x = ";
  for (int i = 0; i < 5000; ++i) lambdas += "lambda: ";
  EXPECT_EQ(refused(lambdas + "a").code, "program_syntax");
}

}  // namespace
}  // namespace meshd::numpy
