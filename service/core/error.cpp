#include "service/core/error.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "service/core/error_codes.h"

namespace meshd::core {

ErrorCode error_code_from_word(std::string_view word) { return ErrorCode(row_of(ErrorCode(word)).word); }

Error::Error(ErrorCode code, std::string detail) : code_(code), detail_(std::move(detail)) {}

Error::Error(ErrorCode code, std::string detail, std::vector<Diagnostic> diagnostics)
    : code_(code), detail_(std::move(detail)), diagnostics_(std::move(diagnostics)) {}

namespace {

// More of a long line would not fit a terminal.
constexpr size_t kLongestExcerpt = 160;

// Line `number` of a text, counted from 1.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 1; --number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

bool is_continued(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The line, and below it a caret. Of a long line what is around the column; never half of a UTF-8 character.
std::string excerpt_of(std::string_view line, int column) {
  if (line.empty() || column < 1 || static_cast<size_t>(column) > line.size() + 1) return {};
  auto at = static_cast<size_t>(column) - 1;
  if (line.size() > kLongestExcerpt) {
    size_t begin = at > kLongestExcerpt / 2 ? at - kLongestExcerpt / 2 : 0;
    while (begin > 0 && begin < line.size() && is_continued(line[begin])) --begin;
    size_t end = std::min(line.size(), begin + kLongestExcerpt);
    while (end < line.size() && is_continued(line[end])) ++end;
    line = line.substr(begin, end - begin);
    at -= begin;
  }
  std::string out(line);
  out += '\n';
  // Tabs stay tabs, so that the caret is below its column.
  for (const char byte : line.substr(0, at)) {
    if (!is_continued(byte)) out += byte == '\t' ? '\t' : ' ';
  }
  return out + '^';
}

}  // namespace

Error& Error::with_text(std::string_view text, std::string_view pointer) {
  for (Diagnostic& each : diagnostics_) {
    if (each.line < 1) continue;
    if (each.pointer.empty()) each.pointer = pointer;
    if (each.excerpt.empty()) each.excerpt = excerpt_of(line_of(text, each.line), each.column);
  }
  return *this;
}

Error& Error::with_internal(std::string text) {
  internal_ = std::move(text);
  return *this;
}

Error& Error::with_retry_after(int seconds) {
  retry_after_seconds_ = seconds;
  return *this;
}

void Diagnostics::throw_if_any(ErrorCode code) const {
  if (list_.empty()) return;
  std::string detail =
      list_.front().pointer.empty() ? list_.front().detail : list_.front().pointer + ": " + list_.front().detail;
  if (list_.size() > 1) detail += fmt::format(" (and {} more)", list_.size() - 1);
  throw Error(code, std::move(detail), list_);
}

}  // namespace meshd::core
