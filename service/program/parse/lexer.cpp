#include "service/program/parse/lexer.h"

#include <array>
#include <cstring>

namespace meshd::program {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '$'; }
constexpr bool is_suffix(char c) { return is_word(c) || c == '-'; }

constexpr std::array<bool, 256> make_of_numbers() {
  std::array<bool, 256> out{};
  for (const char c : std::string_view("0123456789.eE+-,[]() \n")) out[static_cast<unsigned char>(c)] = true;
  return out;
}
constexpr std::array<bool, 256> kOfNumbers = make_of_numbers();

constexpr int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return (c | 0x20) - 'a' + 10;
}

}  // namespace

Token Lexer::finish(Token token, TokenKind kind, const char* stop) {
  token.kind = kind;
  token.text = {cursor_, static_cast<size_t>(stop - cursor_)};
  cursor_ = stop;
  return token;
}

void Lexer::skip_space() {
  while (cursor_ < end_) {
    const char c = *cursor_;
    if (c == '\n') {
      ++cursor_;
      ++line_;
      line_start_ = cursor_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++cursor_;
    } else if (c == '/' && cursor_ + 1 < end_ && cursor_[1] == '/') {
      const void* newline = std::memchr(cursor_, '\n', static_cast<size_t>(end_ - cursor_));
      cursor_ = newline == nullptr ? end_ : static_cast<const char*>(newline);
    } else {
      return;
    }
  }
}

bool Lexer::skip_numbers() {
  const char* p = cursor_;
  int32_t lines = 0;
  const char* line_start = line_start_;
  for (; p < end_ && kOfNumbers[static_cast<unsigned char>(*p)]; ++p) {
    if (*p != '\n') continue;
    ++lines;
    line_start = p + 1;
  }
  if (p == end_ || *p != '>') return false;
  cursor_ = p;
  line_ += lines;
  line_start_ = line_start;
  return true;
}

Token Lexer::number(Token token) {
  const char* p = cursor_;
  if (*p == '0' && p + 2 < end_ && p[1] == 'x' && is_hex(p[2])) {
    p += 2;
    while (p < end_ && is_hex(*p)) ++p;
    return finish(token, TokenKind::kInteger, p);
  }
  while (p < end_ && is_digit(*p)) ++p;
  if (p == end_ || *p != '.') return finish(token, TokenKind::kInteger, p);
  ++p;
  while (p < end_ && is_digit(*p)) ++p;
  if (p < end_ && (*p == 'e' || *p == 'E')) {
    const char* exponent = p + 1;
    if (exponent < end_ && (*exponent == '+' || *exponent == '-')) ++exponent;
    if (exponent < end_ && is_digit(*exponent)) {
      while (exponent < end_ && is_digit(*exponent)) ++exponent;
      p = exponent;
    }
  }
  return finish(token, TokenKind::kFloat, p);
}

Token Lexer::string(Token token) {
  const char* p = cursor_ + 1;
  while (true) {
    const auto left = static_cast<size_t>(end_ - p);
    const auto* quote = static_cast<const char*>(std::memchr(p, '"', left));
    if (quote == nullptr) ir::fail("program_syntax", token.location(), "the string that begins here does not end");
    const auto length = static_cast<size_t>(quote - p);
    if (std::memchr(p, '\n', length) != nullptr) {
      ir::fail("program_syntax", token.location(), "the string that begins here does not end on its line");
    }
    const auto* backslash = static_cast<const char*>(std::memchr(p, '\\', length));
    if (backslash == nullptr) return finish(token, TokenKind::kString, quote + 1);
    p = backslash + 2;
    if (p >= end_) ir::fail("program_syntax", token.location(), "the string that begins here does not end");
  }
}

Token Lexer::prefixed(Token token, TokenKind kind) {
  const char* p = cursor_ + 1;
  if (p < end_ && *p == '"' && kind == TokenKind::kSymbol) {
    const char* start = cursor_;
    ++cursor_;
    const Token name = string(token);
    token.kind = kind;
    token.text = {start, name.text.size() + 1};
    return token;
  }
  if (p < end_ && is_digit(*p)) {
    while (p < end_ && is_digit(*p)) ++p;
  } else {
    while (p < end_ && is_suffix(*p)) {
      if (*p == '-' && p + 1 < end_ && p[1] == '>') break;
      ++p;
    }
  }
  if (p == cursor_ + 1)
    ir::fail("program_syntax", token.location(), std::string("expected a name behind '") + *cursor_ + "'");
  return finish(token, kind, p);
}

Token Lexer::next() {
  skip_space();
  Token token;
  token.line = line_;
  token.column = static_cast<int32_t>(cursor_ - line_start_) + 1;
  if (cursor_ == end_) return token;
  const char c = *cursor_;
  if (is_letter(c) || c == '_') {
    const char* p = cursor_ + 1;
    while (p < end_ && is_word(*p)) ++p;
    return finish(token, TokenKind::kWord, p);
  }
  if (is_digit(c)) return number(token);
  switch (c) {
    case '%':
      return prefixed(token, TokenKind::kValue);
    case '@':
      return prefixed(token, TokenKind::kSymbol);
    case '#':
      if (cursor_ + 1 < end_ && cursor_[1] == '-') return finish(token, TokenKind::kPunctuation, cursor_ + 1);
      return prefixed(token, TokenKind::kHash);
    case '!':
      return prefixed(token, TokenKind::kBang);
    case '^':
      return prefixed(token, TokenKind::kBlock);
    case '"':
      return string(token);
    case '-':
      if (cursor_ + 1 < end_ && cursor_[1] == '>') return finish(token, TokenKind::kArrow, cursor_ + 2);
      return finish(token, TokenKind::kPunctuation, cursor_ + 1);
    case '{':
      if (cursor_ + 2 < end_ && cursor_[1] == '-' && cursor_[2] == '#')
        return finish(token, TokenKind::kFileMetadata, cursor_ + 3);
      return finish(token, TokenKind::kPunctuation, cursor_ + 1);
    case '(':
    case ')':
    case '}':
    case '[':
    case ']':
    case '<':
    case '>':
    case ',':
    case ':':
    case '=':
    case '?':
    case '*':
    case '+':
    case '/':
    case '|':
    case ';':
      return finish(token, TokenKind::kPunctuation, cursor_ + 1);
    default:
      ir::fail("program_syntax", token.location(), "this character begins nothing that a program consists of");
  }
}

std::string unescape(const Token& token) {
  const std::string_view body = token.text.substr(1, token.text.size() - 2);
  std::string out;
  out.reserve(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    const char c = i + 1 < body.size() ? body[i + 1] : '\0';
    if (c == '"' || c == '\\') {
      out += c;
    } else if (c == 'n') {
      out += '\n';
    } else if (c == 't') {
      out += '\t';
    } else if (i + 2 < body.size() && is_hex(c) && is_hex(body[i + 2])) {
      out += static_cast<char>(hex_value(c) * 16 + hex_value(body[i + 2]));
      ++i;
    } else {
      ir::fail("program_syntax", token.location(),
               "unknown escape in a string: expected \\n, \\t, \\\\, \\\" or two hex digits");
    }
    ++i;
  }
  return out;
}

std::string describe(const Token& token) {
  constexpr size_t kShown = 40;
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  std::string shown(token.text.substr(0, kShown));
  if (token.text.size() > kShown) shown += "...";
  return "'" + shown + "'";
}

}  // namespace meshd::program
