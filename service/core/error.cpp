#include "service/core/error.h"

#include <utility>

#include "service/core/error_codes.h"

namespace meshd::core {

ErrorCode error_code_from_word(std::string_view word) { return ErrorCode(row_of(ErrorCode(word)).word); }

Error::Error(ErrorCode code, std::string detail) : code_(code), detail_(std::move(detail)) {}

Error::Error(ErrorCode code, std::string detail, std::vector<Diagnostic> diagnostics)
    : code_(code), detail_(std::move(detail)), diagnostics_(std::move(diagnostics)) {}

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
  if (list_.size() > 1) detail += " (and " + std::to_string(list_.size() - 1) + " more)";
  throw Error(code, std::move(detail), list_);
}

}  // namespace meshd::core
