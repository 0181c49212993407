#include "service/program/parse/parser.h"

#include <fmt/core.h>

#include <charconv>

#include "service/core/error.h"

namespace meshd::program {

Parser::Parser(std::string_view text, core::HoldMemory hold) : text_(text), lexer_(text), hold_(std::move(hold)) {
  if (static_cast<int64_t>(text.size()) > kMaxTextBytes) {
    throw core::Error("program_syntax",
                      fmt::format("the text is too large: {} bytes, at most {} are read", text.size(), kMaxTextBytes));
  }
  advance();
}

Token Parser::take() {
  Token taken = token_;
  advance();
  return taken;
}

bool Parser::accept(char c) {
  if (!token_.is(c)) return false;
  advance();
  return true;
}

bool Parser::accept(std::string_view word) {
  if (!token_.is(word)) return false;
  advance();
  return true;
}

Token Parser::expect(char c, std::string_view where) {
  if (!token_.is(c)) expected("'" + std::string(1, c) + "' " + std::string(where));
  return take();
}

Token Parser::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) expected(what);
  return take();
}

void Parser::expect_word(std::string_view word, std::string_view where) {
  if (!accept(word)) expected("'" + std::string(word) + "' " + std::string(where));
}

void Parser::expect_key(std::string_view key) {
  if (!accept(key)) expected("'" + std::string(key) + " = '");
  expect('=', "behind '" + std::string(key) + "'");
}

void Parser::expected(std::string_view what) const {
  fail("program_syntax", token_, "expected " + std::string(what) + ", got " + describe(token_));
}

void Parser::fail(core::ErrorCode code, const Token& where, const std::string& message) {
  ir::fail(code, where.location(), message);
}

std::string_view Parser::skip_balanced() {
  const char* begin = token_.text.data();
  const Token start = token_;
  if (!at('<') && !at('(') && !at('[') && !at('{')) expected("an opening bracket");
  std::vector<char> open;
  do {
    if (token_.is(TokenKind::kEnd)) fail("program_syntax", start, "the bracket that opens here is not closed");
    if (token_.is('<') || token_.is('(') || token_.is('[') || token_.is('{')) {
      open.push_back(token_.text[0]);
      if (static_cast<int>(open.size()) > kMaxAttributeDepth)
        fail("program_syntax", token_, "brackets nest too deeply");
    } else if (token_.is('>') || token_.is(')') || token_.is(']') || token_.is('}')) {
      const char close = token_.text[0];
      const char opened = close == '>' ? '<' : close == ')' ? '(' : close == ']' ? '[' : '{';
      if (open.back() != opened) expected("the bracket that closes '" + std::string(1, open.back()) + "'");
      open.pop_back();
    }
    if (open.empty()) break;
    advance();
  } while (true);
  const char* stop = token_.text.data() + token_.text.size();
  advance();
  return {begin, static_cast<size_t>(stop - begin)};
}

int64_t Parser::integer(std::string_view what) {
  if (!token_.is(TokenKind::kInteger)) expected(what);
  int64_t value = 0;
  const std::string_view digits = token_.text;
  const bool hex = digits.size() > 2 && digits[1] == 'x';
  const char* begin = digits.data() + (hex ? 2 : 0);
  const auto [stop, error] = std::from_chars(begin, digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || stop != digits.data() + digits.size()) {
    fail("program_syntax", token_, "the number " + describe(token_) + " does not fit in 63 bits");
  }
  advance();
  return value;
}

int64_t Parser::signed_integer(std::string_view what) {
  const bool negative = accept('-');
  const int64_t value = integer(what);
  return negative ? -value : value;
}

std::vector<int64_t> Parser::integer_list(std::string_view where) {
  std::vector<int64_t> out;
  list('[', ']', where, [&] { out.push_back(signed_integer("an integer")); });
  return out;
}

std::string Parser::symbol_name(const Token& token) const {
  Token name = token;
  name.text.remove_prefix(1);
  return name.text[0] == '"' ? unescape(name) : std::string(name.text);
}

}  // namespace meshd::program
