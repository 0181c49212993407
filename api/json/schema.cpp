#include "api/json/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "service/core/near_names.h"

namespace meshd::api {
namespace {

// The property whose name is nearest to one that is not known; empty where none is near.
std::string_view nearest_property(std::string_view given, const std::vector<Property>& known) {
  std::vector<std::string_view> names;
  for (const Property& property : known) names.push_back(property.name);
  return core::nearest_name(given, names);
}

// Names that a reader of a short list takes in; of a longer one the contract is the better page.
constexpr size_t kNamesToList = 12;

// What to write in place of a name that is not known: the nearest one or, where none is near, all that are not there
// yet.
std::string names_to_take(std::string_view nearest, const std::vector<std::string_view>& absent) {
  if (!nearest.empty()) return core::did_you_mean(nearest, '"');
  if (absent.empty() || absent.size() > kNamesToList) return "";
  return fmt::format("; \"{}\" {} known", fmt::join(absent, "\", \""), absent.size() == 1 ? "is" : "are");
}

// " from 1 to 9", of limits as far as there are some.
std::string range_text(const JsonType& type) {
  if (type.low && type.high) return fmt::format(" from {} to {}", *type.low, *type.high);
  if (type.low) return fmt::format(" of at least {}", *type.low);
  return "";
}

bool is_within(double value, const JsonType& type) {
  return !(type.low && value < *type.low) && !(type.high && value > *type.high) && !std::isnan(value);
}

std::string plural(const JsonType& type) {
  switch (type.kind) {
    case JsonType::Kind::kInteger:
      return " of whole numbers";
    case JsonType::Kind::kString:
      return " of strings";
    default:
      return "";
  }
}

JsonType with_rules(JsonType type, const Rules& rules) {
  JsonType* innermost = &type;
  while (!innermost->items.empty()) innermost = &innermost->items.front();
  if (rules.low) innermost->low = rules.low;
  if (rules.high) innermost->high = rules.high;
  if (rules.longest > 0) innermost->longest = rules.longest;
  const std::span<const std::string_view> words = rules.words.all();
  if (!words.empty()) innermost->words.assign(words.begin(), words.end());
  return type;
}

}  // namespace

Nullable<std::string_view> or_null(std::string_view text) { return {unless_empty(text)}; }

std::optional<std::string_view> unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

bool JsonCodec<std::string>::read(const Json& json, const Place& place, std::string& out) {
  const auto* text = json.as<std::string>();
  const std::vector<std::string_view>& words = place.type.words;
  if (!words.empty() && (text == nullptr || std::find(words.begin(), words.end(), *text) == words.end())) {
    std::string list;
    for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + quote(word);
    place.wrong.add(place.pointer, fmt::format("expected one of {}, got {}{}", list,
                                               text != nullptr ? quote(*text) : std::string(json.kind_name()),
                                               text != nullptr ? core::did_you_mean(*text, words, '"') : ""));
    return false;
  }
  if (text == nullptr) {
    place.wrong.add(place.pointer, fmt::format("expected a string, got {}", json.kind_name()));
    return false;
  }
  // Bytes that begin a character.
  const auto characters = std::count_if(text->begin(), text->end(), [](char c) { return (c & 0xc0) != 0x80; });
  if (place.type.longest > 0 && static_cast<size_t>(characters) > place.type.longest) {
    place.wrong.add(place.pointer,
                    fmt::format("expected at most {} characters, got {}", place.type.longest, characters));
    return false;
  }
  out = *text;
  return true;
}

bool JsonCodec<bool>::read(const Json& json, const Place& place, bool& out) {
  const auto* value = json.as<bool>();
  if (value != nullptr) {
    out = *value;
    return true;
  }
  place.wrong.add(place.pointer, fmt::format("expected true or false, got {}", json.kind_name()));
  return false;
}

bool read_integer(const Json& json, const Place& place, int64_t& out) {
  const auto* number = json.as<JsonNumber>();
  const bool is_whole = number != nullptr && number->kind == JsonNumber::Kind::kSigned;
  if (!is_whole || !is_within(static_cast<double>(number->i), place.type)) {
    place.wrong.add(place.pointer,
                    fmt::format("expected a whole number{}, got {}", range_text(place.type), got_text(json)));
    return false;
  }
  const bool is_limited = place.type.low || place.type.high;
  if (!is_limited && (number->i >= kLargestExact || number->i <= -kLargestExact)) {
    place.wrong.add(place.pointer, fmt::format("is beyond {}, to which numbers are exact in JSON, got {}",
                                               kLargestExact - 1, number->i));
    return false;
  }
  out = number->i;
  return true;
}

bool JsonCodec<double>::read(const Json& json, const Place& place, double& out) {
  const auto* number = json.as<JsonNumber>();
  if (number == nullptr || !is_within(number->as_double(), place.type)) {
    place.wrong.add(place.pointer, fmt::format("expected a number{}, got {}", range_text(place.type), got_text(json)));
    return false;
  }
  out = number->as_double();
  return true;
}

void JsonCodec<core::WallTime>::append(std::string& out, core::WallTime value) {
  append_string(out, core::to_rfc3339(value));
}

bool expect_list(const Json& json, const Place& place) {
  if (json.is_array()) return true;
  place.wrong.add(place.pointer,
                  fmt::format("expected a list{}, got {}", plural(place.type.items.front()), json.kind_name()));
  return false;
}

FieldBase::FieldBase(std::string_view name, const ValueOps& ops, const Rules& rules, Member member, Call call)
    : property_{std::string(name), with_rules((rules.like != nullptr ? rules.like : ops.type)(), rules),
                rules.required || (!ops.is_optional && !rules.optional), rules.hidden},
      quoted_(quote(name) + ":"),
      ops_(&ops),
      member_(member),
      call_(call) {}

void FieldBase::append_value(std::string& out, const void* value) const {
  if (ops_->is_there != nullptr && !ops_->is_there(value)) return;
  if (out.back() != '{') out += ',';
  out += quoted_;
  ops_->append(out, value);
}

void SchemaBase::add(const FieldBase& field) {
  fields_.push_back(field);
  properties_.push_back(field.property_);
}

void SchemaBase::append_document(std::string& out, const void* document) const {
  out += '{';
  for (const FieldBase& field : fields_) {
    if (field.ops_->append == nullptr) continue;
    if (field.call_ != nullptr) {
      field.call_(field, document, out);
    } else {
      // A member is found in the same way for reading; writing does not change it.
      field.append_value(out, field.member_(field.get_, const_cast<void*>(document)));
    }
  }
  out += '}';
}

bool SchemaBase::read_document(const Json& json, const std::string& pointer, core::Diagnostics& wrong,
                               void* document) const {
  const JsonObject* object = expect_object(json, pointer, wrong);
  if (object == nullptr) return false;
  bool good = true;
  for (const auto& [name, value] : *object) {
    for (const FieldBase& field : fields_) {
      if (field.property_.name != name) continue;
      if (field.member_ == nullptr || field.ops_->read == nullptr) continue;
      const Place place{field.property_.type, pointer + "/" + pointer_token(name), wrong};
      if (!field.ops_->read(value, place, field.member_(field.get_, document))) good = false;
    }
  }
  return note_names(*object, pointer, wrong) && good;
}

bool SchemaBase::note_names(const JsonObject& object, const std::string& pointer, core::Diagnostics& wrong) const {
  const size_t before = wrong.list().size();
  const auto is_there = [&](std::string_view name) {
    return std::any_of(object.begin(), object.end(), [&](const auto& field) { return field.first == name; });
  };
  // Only for documents with a name that is not known: all others are read without it. Once, as a document may have
  // many.
  std::optional<std::vector<std::string_view>> absent;
  const auto absent_names = [&]() -> const std::vector<std::string_view>& {
    if (absent) return *absent;
    absent.emplace();
    for (const FieldBase& field : fields_)
      if (field.member_ != nullptr && field.ops_->read != nullptr && !is_there(field.property_.name))
        absent->push_back(field.property_.name);
    return *absent;
  };
  std::vector<std::string_view> meant;  // by names that are misspelt: these are not missing as well
  for (const auto& [name, value] : object) {
    if (!has_room(wrong)) return false;
    const bool is_known =
        std::any_of(properties_.begin(), properties_.end(), [&](const Property& p) { return p.name == name; });
    if (is_known) continue;
    const std::string_view nearest = nearest_property(name, properties_);
    meant.push_back(nearest);
    wrong.add(pointer + "/" + pointer_token(name),
              "is not a field that is known here" + names_to_take(is_there(nearest) ? "" : nearest, absent_names()));
  }
  for (const Property& property : properties_) {
    const bool is_meant = std::find(meant.begin(), meant.end(), property.name) != meant.end();
    if (property.required && !is_meant && !is_there(property.name))
      wrong.add(pointer + "/" + pointer_token(property.name), "is missing");
  }
  return wrong.list().size() == before;
}

}  // namespace meshd::api
