// Elides bulk values from JSON text before it is parsed: longer lists of numbers and long strings (arrays in base64,
// programs) are taken out whole, at the speed of a scan. What remains is a small document, which the parser reads
// character by character.
//
// Example: {"shape": [8, 8], "base64": "AAAA...", "data": [1, 2, ...]} with 300 characters and 64 numbers becomes
// {"shape": [8, 8], "base64": "", "data": []}, one string (the 4th of the text) and one list (the 2nd).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/json_numbers.h"

namespace meshd::api {

/// JSON text without its bulk values.
struct ElidedJson {
  struct List {
    size_t array = 0;  ///< the how many-th array of the text, counted from 0
    JsonNumbers numbers;
  };
  /// Printable ASCII without escapes.
  struct String {
    size_t string = 0;  ///< the how many-th string of the text, names included, counted from 0
    std::string_view value;
  };
  struct Cut {
    size_t begin = 0;    ///< in `text`
    size_t removed = 0;  ///< characters
  };
  std::string text;
  std::vector<List> lists;      ///< in the text's order
  std::vector<String> strings;  ///< likewise; in the text that was given
  std::vector<Cut> cuts;

  /// The position in the original of a position in `text`.
  [[nodiscard]] size_t original(size_t position) const;
};

/// Empty when the text has nothing to elide. Lists that are not wholly as RFC 8259 has numbers, and strings with
/// escapes or anything but printable ASCII, stay in the text, for the parser to read or refuse. `most` numbers and
/// `most_values` lists and strings are elided altogether; later ones stay, too. `before_copy` is called with the size
/// of each piece of text before it is copied, and may throw.
ElidedJson elide_bulk_values(const std::shared_ptr<const std::string>& text, int64_t most,
                             int64_t most_values = INT64_MAX, const std::function<void(size_t)>& before_copy = {});

}  // namespace meshd::api
