// The one exception type: what ends a request, a run or a job. It contains a code, text for the client, detail for the
// log and any number of diagnostics. An HTTP exchange, a run or a job ends with it and reports it; layers between catch
// it only to add context, to clean up, or where a failure is an expected outcome.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace meshd::core {

/// The stable machine word of a failure, such as "invalid_program", made from a literal at the throw. Its kind and
/// title are in the table of error_codes.h.
class ErrorCode {
 public:
  consteval ErrorCode(const char* word) : word_(word) {
    for (const char c : word_) {
      if (c != '_' && (c < 'a' || c > 'z')) throw "an error code is a word of small letters and '_'";
    }
  }

  [[nodiscard]] constexpr std::string_view word() const { return word_; }
  friend constexpr bool operator==(ErrorCode a, ErrorCode b) { return a.word_ == b.word_; }

 private:
  constexpr explicit ErrorCode(std::string_view of_table) : word_(of_table) {}
  friend ErrorCode error_code_from_word(std::string_view word);

  std::string_view word_;
};

/// The code with this word, or `internal` when no row has it (a code read back from storage that a newer version
/// wrote).
ErrorCode error_code_from_word(std::string_view word);

/// One thing that is wrong, and where. `pointer` is a JSON Pointer (RFC 6901) into the request's body, or empty;
/// `line` and `column` are 1-based places in a program's text, or 0.
struct Diagnostic {
  std::string pointer;
  std::string detail;
  int line = 0;
  int column = 0;
  std::string excerpt = {};  ///< that line of the text, and below it a caret at the column; may be empty
};

/// Thrown for what ends a request. Message style: what, rule, expected, got; lower case, no full stop.
/// Immutable once thrown; any thread.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string detail);
  Error(ErrorCode code, std::string detail, std::vector<Diagnostic> diagnostics);

  [[nodiscard]] ErrorCode code() const { return code_; }
  /// Text for the client: what is wrong and how to fix it; never paths, pointers or SQL.
  [[nodiscard]] const std::string& detail() const { return detail_; }
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  /// Adds excerpts of the program's text to diagnostics that have a line. `pointer`: where the text is in the
  /// request, for those of them that have none.
  Error& with_text(std::string_view text, std::string_view pointer);
  /// Text for the log only.
  [[nodiscard]] const std::string& internal() const { return internal_; }
  Error& with_internal(std::string text);
  /// Seconds a client should wait before it tries again; 0: no Retry-After.
  [[nodiscard]] int retry_after_seconds() const { return retry_after_seconds_; }
  Error& with_retry_after(int seconds);

  [[nodiscard]] const char* what() const noexcept override { return detail_.c_str(); }

 private:
  ErrorCode code_;
  std::string detail_;
  std::vector<Diagnostic> diagnostics_;
  std::string internal_;
  int retry_after_seconds_ = 0;
};

/// What `work` returns. What it throws gets excerpts of the program's text and the pointer (Error::with_text).
template <typename Work>
auto in_text(std::string_view text, std::string_view pointer, Work&& work) {
  try {
    return work();
  } catch (Error& error) {
    error.with_text(text, pointer);
    throw;
  }
}

/// Collects field errors so that all of them reach the client at once. One thread.
class Diagnostics {
 public:
  void add(std::string pointer, std::string detail) { list_.push_back({std::move(pointer), std::move(detail)}); }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] const std::vector<Diagnostic>& list() const { return list_; }
  /// Throws one Error with all diagnostics if there are any; its detail is the first of them and a count of the others.
  void throw_if_any(ErrorCode code) const;

 private:
  std::vector<Diagnostic> list_;
};

}  // namespace meshd::core
