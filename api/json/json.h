// The JSON parser of requests: nlohmann's SAX interface with limits on depth and nodes, duplicate names refused
// (I-JSON, RFC 7493), numbers kept exactly, runs of numbers packed. schema.h reads documents out of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/json/json_numbers.h"
#include "service/core/error.h"
#include "service/core/memory_ledger.h"

namespace meshd::api {

struct JsonLimits {
  int depth = 64;
  int64_t nodes = 200'000;
  /// Of these at most so many that are not packed into a list of numbers: each takes the size of a Json.
  int64_t values = 2'000'000;
};
/// Of documents with inline arrays.
inline constexpr JsonLimits kInlineLimits{64, 64'000'000};

class Json;
using JsonObject = std::vector<std::pair<std::string, Json>>;
using JsonArray = std::vector<Json>;

/// One value. Movable; reading is const. Numbers-only arrays are JsonNumbers, others JsonArray.
class Json {
 public:
  using Value = std::variant<std::nullptr_t, bool, JsonNumber, std::string, JsonArray, JsonNumbers, JsonObject>;
  Value value = nullptr;

  /// Throws malformed_json with line and column; "too deep", "too many values", duplicate names named.
  /// The text is kept as long as a value that has one of its longer lists of numbers. `memory` holds what the values
  /// take at most while they are made (not the text) and is refused before they take it; null: it is not counted.
  static Json parse(std::shared_ptr<const std::string> text, const JsonLimits& limits = {},
                    core::MemoryReservation* memory = nullptr);
  static Json parse(std::string text, const JsonLimits& limits = {}, core::MemoryReservation* memory = nullptr);

  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&value);
  }
  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
  [[nodiscard]] bool is_array() const { return as<JsonArray>() != nullptr || as<JsonNumbers>() != nullptr; }
  /// Elements of an array of either kind; 0 for anything else.
  [[nodiscard]] size_t size() const;
  /// Element of an array of either kind: for one or two of a long one; else each().
  [[nodiscard]] Json at(size_t i) const;
  /// Calls f(i, element) for each element of an array of either kind, until it gives false. Elements that are no
  /// numbers are where they stay as long as this value does.
  template <typename F>
  void each(F&& f) const {
    if (const auto* items = as<JsonArray>()) {
      for (size_t i = 0; i < items->size() && f(i, (*items)[i]); ++i) continue;
    } else if (const auto* numbers = as<JsonNumbers>()) {
      Json item;
      numbers->each([&](size_t i, const JsonNumber& number) {
        item.value = number;
        return f(i, std::as_const(item));
      });
    }
  }
  /// All elements of an array, copied.
  [[nodiscard]] JsonArray elements() const;
  /// The field of an object; null where there is none, and for what is no object.
  [[nodiscard]] const Json* find(std::string_view name) const;
  /// "null", "a string", "an object": for messages.
  [[nodiscard]] std::string_view kind_name() const;
};

/// What an error says came: a number as it is, "a string", "an object".
std::string got_text(const Json& json);

/// How many mistakes of a body are listed: a body may have millions. Whoever reads the entries of a list stops behind
/// them.
inline constexpr size_t kMostMistakes = 100;
[[nodiscard]] inline bool has_room(const core::Diagnostics& wrong) { return wrong.list().size() < kMostMistakes; }

/// True for a list; notes anything else: "expected a list, got a string".
bool expect_list(const Json& json, const std::string& pointer, core::Diagnostics& wrong);
/// The fields of an object; null for anything else, which is noted: "expected an object, got null".
const JsonObject* expect_object(const Json& json, const std::string& pointer, core::Diagnostics& wrong);

/// A JSON Pointer token (RFC 6901): ~ and / escaped.
std::string pointer_token(std::string_view name);
/// The pointer of an entry of a list.
std::string entry_pointer(const std::string& list, size_t i);

/// Calls f(i, entry, pointer of the entry) for each entry of the list at `pointer`, while there is room for mistakes.
/// Notes what is no list.
template <typename F>
void each_entry(const Json& list, const std::string& pointer, core::Diagnostics& wrong, F&& f) {
  if (!expect_list(list, pointer, wrong)) return;
  list.each([&](size_t i, const Json& entry) {
    f(i, entry, entry_pointer(pointer, i));
    return has_room(wrong);
  });
}

/// From here on not every integer is a number of JSON (RFC 7493).
inline constexpr int64_t kLargestExact = int64_t{1} << 53;

/// "text" with escapes; invalid UTF-8 becomes U+FFFD.
void append_string(std::string& out, std::string_view text);
std::string quote(std::string_view text);
/// JSON text with characters beyond ASCII as \\u escapes, for header fields.
std::string in_ascii(std::string_view json);
/// An integer as JSON: beyond 2^53 as a string.
void append_integer(std::string& out, int64_t value);
void append_unsigned(std::string& out, uint64_t value);
/// A float as JSON: shortest text that reads back; NaN and infinities as strings.
void append_float(std::string& out, float value);
void append_double(std::string& out, double value);

}  // namespace meshd::api
