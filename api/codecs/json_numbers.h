// Lists of numbers in JSON text, found and read before anything else looks at it: bulk arrays are read by
// std::from_chars in place, several times as fast as value by value, and what remains is a control document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace meshd::api {

/// A number as it was written: whole numbers that fit are whole.
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

/// The numbers of one list, packed when all are of one kind.
class JsonNumbers {
 public:
  [[nodiscard]] size_t size() const;
  [[nodiscard]] JsonNumber operator[](size_t i) const;
  void push_back(const JsonNumber& number);

  /// All, when each has a point or an exponent; null otherwise.
  [[nodiscard]] const std::vector<double>* reals() const { return std::get_if<std::vector<double>>(&values_); }

 private:
  void unpack();
  std::variant<std::vector<JsonNumber>, std::vector<double>, std::vector<int64_t>> values_;
};

/// JSON text without the insides of its longer lists of numbers.
struct ElidedJson {
  struct List {
    size_t array = 0;    ///< the how many-th array of the text, counted from 0
    size_t begin = 0;    ///< in `text`, behind its bracket
    size_t removed = 0;  ///< characters
    JsonNumbers numbers;
  };
  std::string text;
  std::vector<List> lists;  ///< in the text's order

  /// Where a position of `text` lies in the original.
  [[nodiscard]] size_t original(size_t position) const;
};

/// Without lists and text when the text has no such list. Lists that are not wholly as RFC 8259 has numbers stay in the
/// text, for the parser to refuse. `most` numbers are read altogether; later lists stay, too.
ElidedJson elide_numbers(std::string_view text, int64_t most);

}  // namespace meshd::api
