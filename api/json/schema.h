// The documents of the API, each declared once: a Schema<T> is a table of a document's fields, over a struct of its own
// or over a value of the service. Reading with every mistake, writing, and the comparison with openapi/openapi.yaml
// follow from the table.
//
//   struct Greeting {
//     std::string name;
//     std::optional<int64_t> times;   // may be absent, when read and when written
//   };
//   template <>
//   const Schema<Greeting>& schema() {
//     static const Schema<Greeting> kSchema{"Greeting", {{"name", &Greeting::name},
//                                                        {"times", &Greeting::times, {.low = 1, .high = 9}},
//                                                        {"length", [](const Greeting& g) { return g.name.size(); }}}};
//     return kSchema;
//   }
//
// to_json(Greeting{"ann", 2}) is {"name":"ann","times":2,"length":3}. The JSON type of a field follows from the type of
// the member or of the function's result:
//
//   std::string, std::string_view   a string             std::vector<X>      a list
//   integers, double, bool          numbers, true/false  std::optional<X>    may be absent
//   core::WallTime                  a time, RFC 3339     Nullable<X>         null where there is nothing
//   const Json*                     anything, to be read by the caller; null: absent
//   Raw                             JSON text as it is   another struct      the document of its Schema
//
// A schema is immutable; any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/json/json.h"
#include "service/core/clock.h"

namespace meshd::api {

class SchemaBase;

/// The JSON type of a value, as in openapi.yaml.
struct JsonType {
  enum class Kind : uint8_t { kAny, kString, kInteger, kNumber, kBoolean, kTime, kBase64, kList, kMap, kObject };
  Kind kind = Kind::kAny;
  bool nullable = false;
  std::optional<double> low = {}, high = {};  ///< of numbers
  size_t longest = 0;                         ///< of strings, in characters; 0: any
  std::vector<std::string_view> words = {};   ///< the only ones that a string may be; empty: any
  std::vector<JsonType> items = {};           ///< one: of a list's or map's entries
  const SchemaBase* (*object)() = nullptr;
};

/// The constraints of a field beyond its type. Limits are those of the entries where the field is a list.
struct Rules {
  std::optional<double> low = {}, high = {};
  size_t longest = 0;
  std::vector<std::string_view> words = {};
  bool optional = false;  ///< a request may leave it out: the member keeps its value
  bool required = false;  ///< of a const Json* or std::optional: a request must have it
  bool hidden = false;    ///< read, but no part of the contract: openapi/README.md lists what is accepted beyond it
  std::optional<JsonType> like = {};  ///< what a const Json* holds
};

/// A value being read: its JSON Pointer, and the diagnostics.
struct Place {
  const JsonType& type;
  std::string pointer;
  core::Diagnostics& wrong;
};

/// A value that is written as null where there is none.
template <typename X>
struct Nullable {
  std::optional<X> value;
};
template <typename X>
Nullable<X> or_null(std::optional<X> value) {
  return {std::move(value)};
}
/// Null for an empty text.
Nullable<std::string_view> or_null(std::string_view text);
Nullable<std::string_view> or_null(std::string&& text) = delete;
/// Absent for an empty text.
std::optional<std::string_view> unless_empty(std::string_view text);
std::optional<std::string_view> unless_empty(std::string&& text) = delete;
/// A field that is left out where the number is 0.
inline std::optional<int64_t> unless_zero(int64_t number) { return number == 0 ? std::nullopt : std::optional(number); }

/// JSON text that is put into a document as it is.
struct Raw {
  std::string_view text;
};

template <typename T>
class Schema;
/// The schema of T; specialised beside each declaration, before its first use.
template <typename T>
const Schema<T>& schema();

/// How a C++ type is read and written; this one is for structs that have a Schema. Other types specialise it: type(),
/// append() and, where requests have them, read(), which notes what is wrong and gives false then.
template <typename M, typename = void>
struct JsonCodec {
  static JsonType type() {
    JsonType out{JsonType::Kind::kObject};
    out.object = [] { return static_cast<const SchemaBase*>(&schema<M>()); };
    return out;
  }
  static void append(std::string& out, const M& value) { schema<M>().append(out, value); }
  static bool read(const Json& json, const Place& place, M& out) requires std::default_initializable<M> {
    return schema<M>().read(json, place.pointer, place.wrong, out);
  }
};

template <typename M>
JsonType json_type() {
  return JsonCodec<M>::type();
}
/// An object whose fields have any names and values like M.
template <typename M>
JsonType map_of() {
  return {.kind = JsonType::Kind::kMap, .items = {json_type<M>()}};
}

template <typename Text>
struct JsonStringCodec {
  static JsonType type() { return {JsonType::Kind::kString}; }
  static void append(std::string& out, std::string_view value) { append_string(out, value); }
};
template <>
struct JsonCodec<std::string> : JsonStringCodec<std::string> {
  static bool read(const Json& json, const Place& place, std::string& out);
};
template <>
struct JsonCodec<std::string_view> : JsonStringCodec<std::string_view> {};
template <>
struct JsonCodec<const char*> : JsonStringCodec<const char*> {};

template <>
struct JsonCodec<bool> {
  static JsonType type() { return {JsonType::Kind::kBoolean}; }
  static void append(std::string& out, bool value) { out += value ? "true" : "false"; }
  static bool read(const Json& json, const Place& place, bool& out);
};

bool read_integer(const Json& json, const Place& place, int64_t& out);
/// Integers beyond 2^53 are strings.
template <typename M>
struct JsonCodec<M, std::enable_if_t<std::is_integral_v<M> && !std::is_same_v<M, bool>>> {
  static JsonType type() { return {JsonType::Kind::kInteger}; }
  static void append(std::string& out, M value) {
    if constexpr (std::is_unsigned_v<M>) {
      append_unsigned(out, value);
    } else {
      append_integer(out, value);
    }
  }
  static bool read(const Json& json, const Place& place, int64_t& out) { return read_integer(json, place, out); }
};

template <>
struct JsonCodec<double> {
  static JsonType type() { return {JsonType::Kind::kNumber}; }
  static void append(std::string& out, double value) { append_double(out, value); }
  static bool read(const Json& json, const Place& place, double& out);
};

template <>
struct JsonCodec<core::WallTime> {
  static JsonType type() { return {JsonType::Kind::kTime}; }
  static void append(std::string& out, core::WallTime value);
};

template <>
struct JsonCodec<Raw> {
  static JsonType type() { return {}; }
  static void append(std::string& out, const Raw& value) { out += value.text; }
};

template <>
struct JsonCodec<const Json*> {
  static JsonType type() { return {}; }
  static bool read(const Json& json, const Place&, const Json*& out) {
    out = &json;
    return true;
  }
};

template <typename X>
struct JsonCodec<Nullable<X>> {
  static JsonType type() {
    JsonType out = json_type<X>();
    out.nullable = true;
    return out;
  }
  static void append(std::string& out, const Nullable<X>& value) {
    value.value ? JsonCodec<X>::append(out, *value.value) : static_cast<void>(out += "null");
  }
};

/// Notes that `json` is no list of what `type` has for entries.
bool expect_list(const Json& json, const Place& place);

template <typename List, typename X>
struct JsonListCodec {
  static JsonType type() { return {.kind = JsonType::Kind::kList, .items = {json_type<X>()}}; }
  static void append(std::string& out, const List& list) {
    out += '[';
    bool first = true;
    for (const auto& item : list) {
      if (!first) out += ',';
      first = false;
      JsonCodec<X>::append(out, item);
    }
    out += ']';
  }
  /// Ends at the first entry that is wrong, as lists may be long; lists of objects go on.
  static bool read(const Json& json, const Place& place, List& out) requires
      requires(const Json& item, const Place& at, X& to) {
    JsonCodec<X>::read(item, at, to);
  }
  {
    if (!expect_list(json, place)) return false;
    const JsonType& items = place.type.items.front();
    bool good = true;
    json.each([&](size_t i, const Json& entry) {
      X item{};
      const bool read = JsonCodec<X>::read(entry, {items, entry_pointer(place.pointer, i), place.wrong}, item);
      good = good && read;
      out.push_back(std::move(item));
      return read || (items.kind == JsonType::Kind::kObject && has_room(place.wrong));
    });
    return good;
  }
};
template <typename X>
struct JsonCodec<std::vector<X>> : JsonListCodec<std::vector<X>, X> {};
template <typename X>
struct JsonCodec<std::span<const X>> : JsonListCodec<std::span<const X>, X> {};

/// A list that may be given as its only entry.
template <typename X>
struct OneOrMore {
  std::vector<X> values;
};
template <typename X>
struct JsonCodec<OneOrMore<X>> {
  static JsonType type() { return json_type<std::vector<X>>(); }
  static bool read(const Json& json, const Place& place, OneOrMore<X>& out) {
    if (json.is_array()) return JsonCodec<std::vector<X>>::read(json, place, out.values);
    return JsonCodec<X>::read(json, {place.type.items.front(), place.pointer, place.wrong}, out.values.emplace_back());
  }
};

/// A field's name, what it looks like, and whether it is always there.
struct Property {
  std::string name;
  JsonType type;
  bool required = true;
  bool hidden = false;
};

/// What is known of a document without its C++ type.
class SchemaBase {
 public:
  /// The name of the schema in openapi.yaml.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Property>& properties() const { return properties_; }

 protected:
  explicit SchemaBase(std::string name) : name_(std::move(name)) {}
  ~SchemaBase() = default;
  SchemaBase(const SchemaBase&) = default;
  /// The object's fields; notes when `json` is none.
  static const JsonObject* open(const Json& json, const std::string& pointer, core::Diagnostics& wrong);
  /// Notes fields that are none of this schema's, with the nearest name, and required ones that are not there.
  bool note_names(const JsonObject& object, const std::string& pointer, core::Diagnostics& wrong) const;

  std::string name_;
  std::vector<Property> properties_;
};

template <typename M>
struct OptionalOf {
  using Type = M;
  static constexpr bool kIs = false;
};
template <typename X>
struct OptionalOf<std::optional<X>> {
  using Type = X;
  static constexpr bool kIs = true;
};

/// A field of the document of T: a member, which is read and written, or a function of T, which is written.
template <typename T>
class Field {
 public:
  template <typename Get>
  Field(std::string_view name, Get get, const Rules& rules = {});  // NOLINT(google-explicit-constructor)

 private:
  friend class Schema<T>;
  Property property_;
  std::function<void(std::string&, const T&)>
      append_;  ///< with the name, nothing for an absent value; empty: not written
  std::function<bool(const Json&, const Place&, T&)> read_;  ///< empty: not read
};

template <typename T>
class Schema : public SchemaBase {
 public:
  Schema(std::string_view name, std::vector<Field<T>> fields)
      : SchemaBase(std::string(name)), fields_(std::move(fields)) {
    for (const Field<T>& field : fields_) properties_.push_back(field.property_);
  }

  void append(std::string& out, const T& value) const {
    out += '{';
    for (const Field<T>& field : fields_) {
      if (field.append_) field.append_(out, value);
    }
    out += '}';
  }

  /// Notes everything that is wrong under `pointer`; false then. What could be read is in `out` all the same.
  bool read(const Json& json, const std::string& pointer, core::Diagnostics& wrong, T& out) const {
    const JsonObject* object = open(json, pointer, wrong);
    if (object == nullptr) return false;
    bool good = true;
    for (const auto& [name, value] : *object) {
      for (const Field<T>& field : fields_) {
        if (field.property_.name != name) continue;
        const Place place{field.property_.type, pointer + "/" + pointer_token(name), wrong};
        if (field.read_ && !field.read_(value, place, out)) good = false;
      }
    }
    return note_names(*object, pointer, wrong) && good;
  }

 private:
  std::vector<Field<T>> fields_;
};

JsonType with_rules(JsonType type, const Rules& rules);
/// `,"name":`, without the comma at the beginning of an object.
void append_name(std::string& out, std::string_view quoted_name);

template <typename T>
template <typename Get>
Field<T>::Field(std::string_view name, Get get, const Rules& rules) {
  using Member = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;
  using Value = typename OptionalOf<Member>::Type;
  constexpr bool kRaw = std::is_same_v<Member, const Json*>;
  property_ = {std::string(name), with_rules(json_type<Value>(), rules),
               rules.required || (!kRaw && !OptionalOf<Member>::kIs && !rules.optional), rules.hidden};
  if constexpr (requires(std::string & out, const Value& value) { JsonCodec<Value>::append(out, value); }) {
    append_ = [quoted = quote(name) + ":", get](std::string& out, const T& from) {
      const auto& value = std::invoke(get, from);
      if constexpr (OptionalOf<Member>::kIs) {
        if (!value) return;
        append_name(out, quoted);
        JsonCodec<Value>::append(out, *value);
      } else {
        append_name(out, quoted);
        JsonCodec<Value>::append(out, value);
      }
    };
  }
  if constexpr (std::is_member_object_pointer_v<Get> && requires(const Json& json, const Place& place, Value& out) {
                  JsonCodec<Value>::read(json, place, out);
                }) {
    read_ = [get](const Json& json, const Place& place, T& to) {
      if constexpr (OptionalOf<Member>::kIs) {
        // What cannot be read is not given: it is a mistake that `place` has noted.
        if (JsonCodec<Value>::read(json, place, (to.*get).emplace())) return true;
        (to.*get).reset();
        return false;
      } else {
        return JsonCodec<Value>::read(json, place, to.*get);
      }
    };
  }
}

template <typename T>
void append_json(std::string& out, const T& value) {
  JsonCodec<T>::append(out, value);
}
template <typename T>
std::string to_json(const T& value) {
  std::string out;
  append_json(out, value);
  return out;
}

/// The document at `pointer` of a body. Notes every mistake; what could be read is given all the same.
template <typename T>
T read_json(const Json& json, const std::string& pointer, core::Diagnostics& wrong) {
  T out;
  schema<T>().read(json, pointer, wrong, out);
  return out;
}
/// The document that a body is. Throws `code` with every mistake.
template <typename T>
T read_json(const Json& json, core::ErrorCode code) {
  core::Diagnostics wrong;
  T out = read_json<T>(json, "", wrong);
  wrong.throw_if_any(code);
  return out;
}

/// One page of a list: {"items": [...], "next": cursor or null}. Its schema is called <T>List.
template <typename T>
struct Page {
  std::vector<T> items;
  std::string next;  ///< empty: null
};
template <typename T>
struct JsonCodec<Page<T>> {
  static const Schema<Page<T>>& of() {
    static const Schema<Page<T>> kSchema{
        schema<T>().name() + "List",
        {{"items", &Page<T>::items}, {"next", [](const Page<T>& page) { return or_null(page.next); }}}};
    return kSchema;
  }
  static JsonType type() {
    JsonType out{JsonType::Kind::kObject};
    out.object = [] { return static_cast<const SchemaBase*>(&of()); };
    return out;
  }
  static void append(std::string& out, const Page<T>& page) { of().append(out, page); }
};

}  // namespace meshd::api
