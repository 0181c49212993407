#include "service/numpy/syntax/lexer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "service/numpy/syntax/limits.h"
#include "service/numpy/syntax/mistakes.h"

namespace meshd::numpy {
namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// Characters that editors and chats put in the place of others.
constexpr std::pair<std::string_view, std::string_view> kLookalikes[] = {{"\u201c", "the quote \""},
                                                                         {"\u201d", "the quote \""},
                                                                         {"\u2018", "the quote '"},
                                                                         {"\u2019", "the quote '"},
                                                                         {"\u2212", "the minus -"},
                                                                         {"\u2013", "the minus -"},
                                                                         {"\u2014", "the minus -"},
                                                                         {"\u00d7", "the product *"},
                                                                         {"\u00f7", "the quotient /"},
                                                                         {"\u2264", "<="},
                                                                         {"\u2265", ">="},
                                                                         {"\u2260", "!="},
                                                                         {"\uff08", "the bracket ("},
                                                                         {"\uff09", "the bracket )"},
                                                                         {"\uff0c", "the comma"},
                                                                         {"\uff1a", "the colon"},
                                                                         {"\u00a0", "a blank"},
                                                                         {"\u3000", "a blank"},
                                                                         {"\u200b", "nothing"},
                                                                         {"\ufeff", "nothing"}};

// Longest first.
constexpr std::array<std::string_view, 47> kOperators = {
    "**=", "//=", "<<=", ">>=", "...", "->", ":=", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=",
    "&=",  "|=",  "^=",  "@=",  "**",  "//", "<<", ">>", "+",  "-",  "*",  "/",  "%",  "@",  "&",  "|",
    "^",   "~",   "<",   ">",   "(",   ")",  "[",  "]",  "{",  "}",  ",",  ":",  ".",  ";",  "="};

class TextLexer {
 public:
  explicit TextLexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    if (text_.size() > kMaxTextBytes) {
      fail("program_syntax", {1, 1},
           fmt::format("the text has {} bytes; at most {} are read", text_.size(), kMaxTextBytes));
    }
    while (at_ < text_.size()) {
      if (at_line_start_ && brackets_.empty()) {
        if (!begin_line()) continue;
      }
      token();
    }
    if (!brackets_.empty())
      fail("program_syntax", brackets_.back().place, "'" + brackets_.back().text + "' is not closed");
    if (!out_.empty() && out_.back().kind != TokenKind::kNewline) push(TokenKind::kNewline, "");
    for (; indents_.size() > 1; indents_.pop_back()) push(TokenKind::kDedent, "");
    push(TokenKind::kEnd, "");
    return std::move(out_);
  }

 private:
  [[nodiscard]] Place here() const { return {line_, static_cast<int32_t>(at_ - line_start_) + 1}; }
  [[nodiscard]] char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Token& push(TokenKind kind, std::string text) { return push(kind, std::move(text), here()); }
  Token& push(TokenKind kind, std::string text, Place place) {
    Token& made = out_.emplace_back();
    made.kind = kind;
    made.text = std::move(text);
    made.place = place;
    return made;
  }

  void end_line() {
    ++at_;
    ++line_;
    line_start_ = at_;
  }

  // Reads the indentation; false for a line without tokens, which is skipped.
  bool begin_line() {
    size_t width = 0;
    while (peek() == ' ' || peek() == '\t' || peek() == '\f') {
      width = peek() == '\t' ? width / 8 * 8 + 8 : width + 1;
      ++at_;
    }
    if (peek() == '#') skip_comment();
    if (peek() == '\r' && peek(1) == '\n') ++at_;
    if (at_ >= text_.size()) return false;
    if (peek() == '\n') {
      end_line();
      return false;
    }
    at_line_start_ = false;
    if (width > indents_.back()) {
      if (indents_.size() > static_cast<size_t>(kMaxSyntaxDepth))
        fail("program_syntax", here(), fmt::format("blocks are nested more than {} deep", kMaxSyntaxDepth));
      indents_.push_back(width);
      push(TokenKind::kIndent, "");
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      push(TokenKind::kDedent, "");
    }
    if (width != indents_.back()) fail("program_syntax", here(), "the indentation fits no block around it");
    return true;
  }

  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  void token() {
    const char c = peek();
    if (c == '\n') return newline();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
    } else if (c == '#') {
      skip_comment();
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 1 : 2;
      end_line();
    } else if (is_name_start(c)) {
      name();
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (c == '"' || c == '\'') {
      string(false);
    } else {
      op();
    }
  }

  void newline() {
    if (brackets_.empty()) {
      push(TokenKind::kNewline, "");
      at_line_start_ = true;
    }
    end_line();
  }

  void name() {
    const Place place = here();
    const size_t begin = at_;
    while (is_name_part(peek())) ++at_;
    std::string text(text_.substr(begin, at_ - begin));
    if ((peek() == '"' || peek() == '\'') && text.size() <= 2) return prefixed_string(text, place);
    push(TokenKind::kName, std::move(text), place);
  }

  void prefixed_string(const std::string& prefix, Place place) {
    const bool raw = prefix == "r" || prefix == "R";
    if (prefix.find_first_not_of("rRbBfFuU") != std::string::npos)
      fail("program_syntax", place, "'" + prefix + "' is no prefix of a string");
    if (prefix == "f" || prefix == "F") return format_string(place);
    if (!raw && prefix != "u" && prefix != "U") {
      fail("unsupported_type", place,
           prefix.find_first_of("fF") != std::string::npos ? "raw f-strings are not supported"
                                                           : "bytes are not supported");
    }
    string(raw);
  }

  void format_string(Place place) {
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    std::vector<FormatField> fields;
    std::string text;
    for (;;) {
      if (at_ >= text_.size() || (!triple && peek() == '\n')) fail("program_syntax", place, "the string does not end");
      if (ends_string(quote, triple)) break;
      const char c = peek();
      if ((c == '{' || c == '}') && peek(1) == c) {
        text += c;
        at_ += 2;
      } else if (c == '{') {
        fields.push_back(format_field(std::exchange(text, {}), quote, triple));
      } else if (c == '}') {
        fail("program_syntax", here(), "a single '}' in an f-string; write '}}' for the character");
      } else if (c == '\\') {
        escape(text);
      } else {
        text += c;
        if (c == '\n') {
          end_line();
        } else {
          ++at_;
        }
      }
      if (text.size() > kMaxStringBytes) fail("program_syntax", place, "the string is longer than is read");
    }
    at_ += triple ? 3 : 1;
    push(TokenKind::kFormat, std::move(text), place).fields = std::move(fields);
  }

  [[nodiscard]] bool ends_string(char quote, bool triple) const {
    return peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote));
  }

  // From '{' to behind '}', on one line. Brackets and strings of the other quote may be in it.
  FormatField format_field(std::string before, char quote, bool triple) {
    ++at_;
    FormatField out{std::move(before), {}, {}, here()};
    int depth = 0;
    char inner = '\0';
    const auto fits = [&] { return at_ < text_.size() && peek() != '\n' && !ends_string(quote, triple); };
    for (; fits(); ++at_) {
      const char c = peek();
      if (inner != '\0') {
        if (c == inner) inner = '\0';
      } else if (c == '"' || c == '\'') {
        inner = c;
      } else if (c == '(' || c == '[' || c == '{') {
        ++depth;
      } else if (depth > 0 && (c == ')' || c == ']' || c == '}')) {
        --depth;
      } else if (depth == 0 && (c == '}' || c == ':')) {
        break;
      } else if (depth == 0 && ((c == '!' && peek(1) != '=') || (c == '=' && peek(1) == '}'))) {
        fail("unsupported_type", here(), "'!r' and '=' in an f-string are not supported");
      }
      out.source += c;
    }
    if (fits() && peek() == ':') {
      for (++at_; fits() && peek() != '}'; ++at_) {
        if (peek() == '{') fail("unsupported_type", here(), "fields within the format of a field are not supported");
        out.specification += peek();
      }
    }
    if (!fits()) fail("program_syntax", out.place, "the '{' of an f-string is not closed in its line");
    if (out.source.find_first_not_of(" \t") == std::string::npos)
      fail("program_syntax", out.place, "a field of an f-string is empty");
    ++at_;
    return out;
  }

  void number() {
    const Place place = here();
    const size_t begin = at_;
    if (peek() == '0' && (peek(1) | 0x20) != 0 && std::string_view("xXoObB").find(peek(1)) != std::string_view::npos)
      return based_integer(place);
    bool is_float = false;
    std::string digits;
    const auto take_digits = [&] {
      while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) {
        if (peek() != '_') digits += peek();
        ++at_;
      }
    };
    take_digits();
    if (peek() == '.') {
      is_float = true;
      digits += '.';
      ++at_;
      take_digits();
    }
    if ((peek() == 'e' || peek() == 'E') &&
        (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))))) {
      is_float = true;
      digits += 'e';
      ++at_;
      if (!is_digit(peek())) digits += text_[at_++];
      take_digits();
    }
    const bool imaginary = peek() == 'j' || peek() == 'J';
    if (imaginary) ++at_;
    if (is_name_part(peek()))
      fail("program_syntax", place, "'" + std::string(text_.substr(begin, at_ - begin + 1)) + "' is no number");
    Token& made = push(TokenKind::kNumber, std::string(text_.substr(begin, at_ - begin)), place);
    if (is_float || imaginary) {
      const double value = std::strtod(digits.c_str(), nullptr);
      made.number = imaginary ? Number(std::complex<double>(0, value)) : Number(value);
      return;
    }
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos)
      fail("program_syntax", place, "whole numbers have no zeros in front; octal ones begin with 0o");
    integer(made, digits, 10);
  }

  void based_integer(Place place) {
    const char letter = static_cast<char>(peek(1) | 0x20);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
    at_ += 2;
    std::string digits;
    while (is_name_part(peek())) {
      if (peek() != '_') digits += peek();
      ++at_;
    }
    Token& made = push(TokenKind::kNumber, digits, place);
    integer(made, digits, base);
  }

  static void integer(Token& token, const std::string& digits, int base) {
    int64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    if (error == std::errc::result_out_of_range)
      fail("program_syntax", token.place, "whole numbers have at most 63 bits here, '" + token.text + "' has more");
    if (error != std::errc{} || stop != end) fail("program_syntax", token.place, "'" + token.text + "' is no number");
    token.number = value;
  }

  void string(bool raw) {
    const Place place = here();
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    std::string value;
    while (true) {
      if (at_ >= text_.size() || (!triple && peek() == '\n')) fail("program_syntax", place, "the string does not end");
      if (ends_string(quote, triple)) break;
      if (peek() == '\\' && !raw) {
        escape(value);
      } else if (peek() == '\n') {
        value += '\n';
        end_line();
      } else {
        value += text_[at_++];
      }
      if (value.size() > kMaxStringBytes) fail("program_syntax", place, "the string is longer than is read");
    }
    at_ += triple ? 3 : 1;
    push(TokenKind::kString, std::move(value), place);
  }

  void escape(std::string& value) {
    const Place place = here();
    ++at_;
    const char c = peek();
    constexpr std::string_view kLetters = "ntr\\'\"0";
    constexpr std::string_view kMeanings("\n\t\r\\'\"\0", 7);
    if (c == '\n') return end_line();
    const size_t known = c == '\0' ? std::string_view::npos : kLetters.find(c);
    if (known == std::string_view::npos)
      fail("program_syntax", place, R"(of the escapes, \n \t \r \\ \' \" and \0 are known here)");
    value += kMeanings[known];
    ++at_;
  }

  void op() {
    const Place place = here();
    for (const std::string_view candidate : kOperators) {
      if (!text_.substr(at_).starts_with(candidate)) continue;
      at_ += candidate.size();
      Token& made = push(TokenKind::kOperator, std::string(candidate), place);
      bracket(made);
      return;
    }
    const auto c = static_cast<unsigned char>(peek());
    for (const auto& [foreign, plain] : kLookalikes) {
      if (text_.substr(at_).starts_with(foreign))
        fail("program_syntax", place, fmt::format("'{}' is not {}, though it looks like it", foreign, plain));
    }
    if (c >= 0xC0) {
      size_t length = 1;  // of a character in UTF-8
      while (length < 4 && (static_cast<unsigned char>(peek(length)) & 0xC0) == 0x80) ++length;
      fail("program_syntax", place,
           fmt::format("'{}' starts nothing here; names have the letters a to z, digits and _",
                       text_.substr(at_, length)));
    }
    fail("program_syntax", place,
         c < 0x20 || c >= 0x7F ? fmt::format("a character (byte {}) that starts nothing in Python", c)
                               : "'" + std::string(1, peek()) + "' starts nothing in Python");
  }

  void bracket(const Token& token) {
    const char c = token.text[0];
    if (c == '(' || c == '[' || c == '{') {
      if (brackets_.size() >= static_cast<size_t>(kMaxSyntaxDepth))
        fail("program_syntax", token.place, fmt::format("brackets are nested more than {} deep", kMaxSyntaxDepth));
      brackets_.push_back(token);
    }
    if (token.text.size() > 1 || (c != ')' && c != ']' && c != '}')) return;
    const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (brackets_.empty()) fail("program_syntax", token.place, "'" + token.text + "' closes nothing");
    if (brackets_.back().text[0] != wanted) {
      fail("program_syntax", token.place,
           fmt::format("'{}' does not close '{}' of line {}", token.text, brackets_.back().text,
                       brackets_.back().place.line));
    }
    brackets_.pop_back();
  }

  std::string_view text_;
  size_t at_ = 0;
  int32_t line_ = 1;
  size_t line_start_ = 0;
  bool at_line_start_ = true;
  std::vector<size_t> indents_{0};
  std::vector<Token> brackets_;
  std::vector<Token> out_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) { return TextLexer(text).run(); }

}  // namespace meshd::numpy
