// Numbers of JSON as they were written. Longer lists of them stay text (elide.h) until their dtype is known, and are
// then parsed by std::from_chars straight into an array's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshd::api {

/// A number as it was written: an integer where it fits one.
struct JsonNumber {
  enum class Kind : uint8_t { kSigned, kUnsigned, kFloat };
  Kind kind = Kind::kSigned;
  union {
    int64_t i = 0;
    uint64_t u;
    double f;
  };
  [[nodiscard]] double as_double() const;
};

/// Parses the number at `at`, already validated: skips space before it and the comma behind it.
const char* read_number(const char* at, const char* end, JsonNumber& out);

/// The numbers of one list: a longer list is its text, which is read each time.
class JsonNumbers {
 public:
  JsonNumbers() = default;
  /// `inside`: `count` numbers between two brackets of `text`, all of which are right and fit JsonNumber.
  JsonNumbers(std::shared_ptr<const std::string> text, std::string_view inside, size_t count)
      : text_(std::move(text)), inside_(inside), count_(count) {}

  [[nodiscard]] size_t size() const { return text_ != nullptr ? count_ : few_.size(); }
  /// Reads a longer list from its beginning: for one or two elements; else each().
  [[nodiscard]] JsonNumber operator[](size_t i) const;
  /// Calls f(i, number) for each until it gives false.
  template <typename F>
  void each(F&& f) const {
    if (text_ == nullptr) {
      for (size_t i = 0; i < few_.size() && f(i, few_[i]); ++i) continue;
      return;
    }
    JsonNumber number;
    const char* at = inside_.data();
    const char* const end = at + inside_.size() + 1;  // the bracket ends the last number
    for (size_t i = 0; i < count_; ++i) {
      at = read_number(at, end, number);
      if (!f(i, number)) return;
    }
  }
  /// To a list that was not elided.
  void push_back(const JsonNumber& number) { few_.push_back(number); }

 private:
  std::vector<JsonNumber> few_;
  std::shared_ptr<const std::string> text_;
  std::string_view inside_;
  size_t count_ = 0;
};

/// A text that is a whole number and nothing else, from 0 to 2^63 - 1; nothing for others.
std::optional<int64_t> whole_number(std::string_view text);

}  // namespace meshd::api
