// The documents of the API, each declared once: a Schema<T> is a table of a document's fields, over a struct of its own
// or over a value of the service. Reading with every mistake, writing, and the comparison with openapi/openapi.yaml
// follow from the table.
//
//   struct Greeting {
//     std::string name;
//     std::optional<int64_t> times;   // may be absent, when read and when written
//   };
//   template <>
//   Schema<Greeting> make_schema() {
//     return {"Greeting", {{"name", &Greeting::name},
//                          {"times", &Greeting::times, {.low = 1, .high = 9}},
//                          {"length", [](const Greeting& g) { return g.name.size(); }}}};
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

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
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

/// The words of a list or array, while that lives.
class Words {
 public:
  constexpr Words() = default;
  constexpr Words(std::initializer_list<std::string_view> words) : words_(words.begin(), words.size()) {}
  template <std::convertible_to<std::span<const std::string_view>> List>
  constexpr Words(const List& words) : words_(words) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] constexpr std::span<const std::string_view> all() const { return words_; }

 private:
  std::span<const std::string_view> words_;
};

/// The constraints of a field beyond its type. Limits are those of the entries where the field is a list.
struct Rules {
  std::optional<double> low = {}, high = {};
  size_t longest = 0;
  Words words = {};
  bool optional = false;  ///< a request may leave it out: the member keeps its value
  bool required = false;  ///< of a const Json* or std::optional: a request must have it
  bool hidden = false;    ///< read, but no part of the contract: openapi/README.md lists what is accepted beyond it
  JsonType (*like)() = nullptr;  ///< what a const Json* holds
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
/// Declares the fields of T; specialised beside each struct, before its first use.
template <typename T>
Schema<T> make_schema();
template <typename T>
const Schema<T>& schema() {
  static const Schema<T> kSchema = make_schema<T>();
  return kSchema;
}

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
/// A number, as the contract says of counts and sizes, also beyond 2^53, where some readers round it (RFC 7493, 2.2).
template <typename M>
struct JsonCodec<M, std::enable_if_t<std::is_integral_v<M> && !std::is_same_v<M, bool>>> {
  static JsonType type() { return {JsonType::Kind::kInteger}; }
  static void append(std::string& out, M value) { out += std::to_string(value); }
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
    out.push_back(std::move(to));
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

/// How the values of a C++ type are written and read, by their addresses.
struct ValueOps {
  JsonType (*type)();
  bool is_optional;  ///< a request may leave it out
  bool (*is_there)(const void* value);
  void (*append)(std::string& out, const void* value);              ///< null: not written
  bool (*read)(const Json& json, const Place& place, void* value);  ///< null: not read
};

template <typename M>
constexpr ValueOps value_ops() {
  using Optional = OptionalOf<M>;
  using Value = typename Optional::Type;
  ValueOps out{&JsonCodec<Value>::type, Optional::kIs || std::is_same_v<M, const Json*>, nullptr, nullptr, nullptr};
  if constexpr (Optional::kIs)
    out.is_there = [](const void* value) { return static_cast<const M*>(value)->has_value(); };
  if constexpr (requires(std::string & text, const Value& value) { JsonCodec<Value>::append(text, value); }) {
    out.append = [](std::string& text, const void* value) {
      if constexpr (Optional::kIs) {
        JsonCodec<Value>::append(text, **static_cast<const M*>(value));
      } else {
        JsonCodec<Value>::append(text, *static_cast<const M*>(value));
      }
    };
  }
  if constexpr (requires(const Json& json, const Place& place, Value& value) {
                  JsonCodec<Value>::read(json, place, value);
                }) {
    out.read = [](const Json& json, const Place& place, void* value) {
      M& to = *static_cast<M*>(value);
      if constexpr (Optional::kIs) {
        // What cannot be read is not given: it is a mistake that `place` has noted.
        if (JsonCodec<Value>::read(json, place, to.emplace())) return true;
        to.reset();
        return false;
      } else {
        return JsonCodec<Value>::read(json, place, to);
      }
    };
  }
  return out;
}
template <typename M>
inline constexpr ValueOps kValueOps = value_ops<M>();

/// A field without the C++ type of its document. One class for all documents, so that a document's table costs the
/// compiler a call for each field.
class FieldBase {
 public:
  /// The bytes of a pointer to a data member, or of a function with its captures.
  struct alignas(8) Get {
    std::array<std::byte, 8> bytes;
  };
  [[nodiscard]] const Get& getter() const { return get_; }
  /// `,"name":value`, without the comma at the beginning of an object; nothing for an absent value.
  void append_value(std::string& out, const void* value) const;

 protected:
  /// The address of the member in the document.
  using Member = void* (*)(const Get& get, void* document);
  /// Appends the function's result.
  using Call = void (*)(const FieldBase& field, const void* document, std::string& out);

  FieldBase(std::string_view name, const ValueOps& ops, const Rules& rules, Member member, Call call);

  Get get_{};

 private:
  friend class SchemaBase;
  Property property_;
  std::string quoted_;  ///< the name as it is written
  const ValueOps* ops_;
  Member member_;
  Call call_;
};

/// A field of the document of T: a member, which is read and written, or a function of T, which is written.
template <typename T>
class Field : public FieldBase {
 public:
  template <typename M, typename Struct>
  requires std::derived_from<T, Struct> Field(std::string_view name, M Struct::*member, const Rules& rules = {})
      : FieldBase(name, kValueOps<M>, rules, &at<M, Struct>, nullptr) {
    static_assert(sizeof member == sizeof get_);
    std::memcpy(&get_, &member, sizeof member);
  }
  template <std::invocable<const T&> Function>
  requires(!std::is_member_pointer_v<Function>)
      Field(std::string_view name, Function get, const Rules& rules = {})  // NOLINT(google-explicit-constructor)
      : FieldBase(name, kValueOps<std::remove_cvref_t<std::invoke_result_t<Function, const T&>>>, rules, nullptr,
                  &call<Function>) {
    static_assert(std::is_trivially_copyable_v<Function> && sizeof get <= sizeof get_ && alignof(Function) <= 8);
    std::memcpy(&get_, &get, sizeof get);
  }

 private:
  template <typename M, typename Struct>
  static void* at(const Get& get, void* document) {
    M Struct::*member;
    std::memcpy(&member, &get, sizeof member);
    return &(static_cast<T*>(document)->*member);
  }
  template <typename Function>
  static void call(const FieldBase& field, const void* document, std::string& out) {
    const auto& get = *std::launder(reinterpret_cast<const Function*>(&field.getter()));
    const auto& value = get(*static_cast<const T*>(document));
    field.append_value(out, &value);
  }
};

/// What is known of a document without its C++ type.
class SchemaBase {
 public:
  /// The name of the schema in openapi.yaml.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Property>& properties() const { return properties_; }

 protected:
  explicit SchemaBase(std::string_view name) : name_(name) {}
  ~SchemaBase() = default;
  SchemaBase(const SchemaBase&) = default;
  void add(const FieldBase& field);
  void append_document(std::string& out, const void* document) const;
  bool read_document(const Json& json, const std::string& pointer, core::Diagnostics& wrong, void* document) const;

 private:
  /// Notes fields that are none of this schema's, with the nearest name, and required ones that are not there.
  bool note_names(const JsonObject& object, const std::string& pointer, core::Diagnostics& wrong) const;

  std::string name_;
  std::vector<FieldBase> fields_;
  std::vector<Property> properties_;
};

template <typename T>
class Schema : public SchemaBase {
 public:
  Schema(std::string_view name, std::initializer_list<Field<T>> fields) : SchemaBase(name) {
    for (const Field<T>& field : fields) add(field);
  }
  Schema(std::string_view name, const std::vector<Field<T>>& fields) : SchemaBase(name) {
    for (const Field<T>& field : fields) add(field);
  }

  void append(std::string& out, const T& value) const { append_document(out, &value); }
  /// Notes everything that is wrong under `pointer`; false then. What could be read is in `out` all the same.
  bool read(const Json& json, const std::string& pointer, core::Diagnostics& wrong, T& out) const {
    return read_document(json, pointer, wrong, &out);
  }
};

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
