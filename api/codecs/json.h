// JSON as it comes from outside: read through nlohmann's SAX interface with limits on depth and nodes, duplicate names
// refused (I-JSON, RFC 7493), numbers kept exactly, runs of numbers packed. And getters that collect every mistake with
// its JSON Pointer.
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

#include "api/codecs/json_numbers.h"
#include "service/core/error.h"

namespace meshd::api {

struct JsonLimits {
  int depth = 64;
  int64_t nodes = 200'000;
  /// Of these at most so many that are not packed into a list of numbers: each takes the size of a Json.
  int64_t values = 2'000'000;
};

class Json;
using JsonObject = std::vector<std::pair<std::string, Json>>;
using JsonArray = std::vector<Json>;

/// One value. Movable; reading is const. Numbers-only arrays are JsonNumbers, others JsonArray.
class Json {
 public:
  using Value = std::variant<std::nullptr_t, bool, JsonNumber, std::string, JsonArray, JsonNumbers, JsonObject>;
  Value value = nullptr;

  /// Throws malformed_json with line and column; "too deep", "too many values", duplicate names named.
  static Json parse(std::string_view text, const JsonLimits& limits = {});

  template <typename T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&value);
  }
  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
  [[nodiscard]] bool is_array() const { return as<JsonArray>() != nullptr || as<JsonNumbers>() != nullptr; }
  /// Elements of an array of either kind; 0 for anything else.
  [[nodiscard]] size_t size() const;
  /// Element of an array of either kind.
  [[nodiscard]] Json at(size_t i) const;
  /// "null", "a string", "an object": for messages.
  [[nodiscard]] std::string_view kind_name() const;
};

/// Reads an object's fields and notes what is wrong; every field has to be asked for, what is left is refused by
/// finish().
class ObjectReader {
 public:
  /// `pointer` is the object's place in the body; notes it when `json` is no object.
  ObjectReader(const Json& json, std::string pointer, core::Diagnostics& wrong);

  /// The field, or null; marks it as known.
  const Json* field(std::string_view name);
  [[nodiscard]] std::string pointer(std::string_view name) const;
  std::optional<std::string> string(std::string_view name);
  std::optional<int64_t> integer(std::string_view name, int64_t low, int64_t high);
  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name, double low, double high);
  /// One of the words.
  std::optional<std::string> word(std::string_view name, std::initializer_list<std::string_view> allowed);
  std::optional<std::vector<int64_t>> integers(std::string_view name);
  /// As above, each from `low` to `high`: notes the first that is not.
  std::optional<std::vector<int64_t>> integers(std::string_view name, int64_t low, int64_t high);
  std::optional<std::vector<std::string>> strings(std::string_view name);
  /// Notes that the field is missing.
  void missing(std::string_view name);
  /// Notes every field nobody asked for. A misspelt name is answered with the nearest known one.
  void finish();

 private:
  const JsonObject* object_;
  std::string pointer_;
  core::Diagnostics& wrong_;
  std::vector<std::string> asked_;
};

/// How many mistakes of a body are listed: a body may have millions. Whoever reads the entries of a list stops behind
/// them.
inline constexpr size_t kMostMistakes = 100;
[[nodiscard]] inline bool has_room(const core::Diagnostics& wrong) { return wrong.list().size() < kMostMistakes; }

/// A JSON Pointer token (RFC 6901): ~ and / escaped.
std::string pointer_token(std::string_view name);
/// "text" with escapes; invalid UTF-8 becomes U+FFFD.
void append_string(std::string& out, std::string_view text);
std::string quote(std::string_view text);
/// An integer as JSON: beyond 2^53 as a string.
void append_integer(std::string& out, int64_t value);
void append_unsigned(std::string& out, uint64_t value);
/// A float as JSON: shortest text that reads back; NaN and infinities as strings.
void append_float(std::string& out, float value);
void append_double(std::string& out, double value);
/// [1,2,3]
std::string integer_list(const std::vector<int64_t>& values);

}  // namespace meshd::api
