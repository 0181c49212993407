#include "api/codecs/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace meshd::api {
namespace {

constexpr int64_t kLargestExact = int64_t{1} << 53;

// Builds Json values and stops at the limits.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `lists` were taken out of the text, whose arrays they are.
  Builder(const JsonLimits& limits, ElidedJson& elided) : limits_(limits), lists_(elided.lists) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override {
    Json json;
    json.value = value;
    return add(std::move(json));
  }
  bool number_integer(number_integer_t value) override {
    JsonNumber number;
    number.kind = JsonNumber::Kind::kSigned;
    number.i = value;
    return add_number(number);
  }
  bool number_unsigned(number_unsigned_t value) override {
    JsonNumber number;
    if (value <= static_cast<uint64_t>(INT64_MAX)) {
      number.kind = JsonNumber::Kind::kSigned;
      number.i = static_cast<int64_t>(value);
    } else {
      number.kind = JsonNumber::Kind::kUnsigned;
      number.u = value;
    }
    return add_number(number);
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    JsonNumber number;
    number.kind = JsonNumber::Kind::kFloat;
    number.f = value;
    return add_number(number);
  }
  bool string(string_t& value) override {
    Json json;
    json.value = std::move(value);
    return add(std::move(json));
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override { return open(JsonObject{}); }
  bool key(string_t& value) override {
    auto& object = std::get<JsonObject>(stack_.back().value);
    auto& names = names_.back();
    if (!names.emplace(value, true).second) {
      problem = "the name " + quote(value) + " stands twice in one object";
      return false;
    }
    object.emplace_back(std::move(value), Json{});
    return true;
  }
  bool end_object() override {
    names_.pop_back();
    return close();
  }
  bool start_array(std::size_t /*elements*/) override {
    const size_t array = arrays_++;
    if (next_list_ == lists_.size() || lists_[next_list_].array != array) return open(JsonNumbers{});
    JsonNumbers numbers = std::move(lists_[next_list_++].numbers);
    nodes_ += static_cast<int64_t>(numbers.size());
    return open(std::move(numbers));
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    failed_at = position;
    problem = error.what();
    if (const size_t colon = problem.find(": "); colon != std::string::npos) problem.erase(0, colon + 2);
    return false;
  }

  Json root;
  std::string problem;
  size_t failed_at = 0;

 private:
  bool count() {
    if (++nodes_ <= limits_.nodes) return true;
    problem = "more than " + std::to_string(limits_.nodes) + " values";
    return false;
  }
  bool open(Json::Value value) {
    if (static_cast<int>(stack_.size()) >= limits_.depth) {
      problem = "nested deeper than " + std::to_string(limits_.depth) + " levels";
      return false;
    }
    if (std::holds_alternative<JsonObject>(value)) names_.emplace_back();
    Json json;
    json.value = std::move(value);
    stack_.push_back(std::move(json));
    return count();
  }
  bool close() {
    Json done = std::move(stack_.back());
    stack_.pop_back();
    --nodes_;
    return add(std::move(done));
  }
  bool add_number(const JsonNumber& number) {
    if (!stack_.empty()) {
      if (auto* numbers = std::get_if<JsonNumbers>(&stack_.back().value)) {
        numbers->push_back(number);
        return count();
      }
    }
    Json json;
    json.value = number;
    return add(std::move(json));
  }
  bool add(Json json) {
    if (!count()) return false;
    if (++values_ > limits_.values) {
      problem = "more than " + std::to_string(limits_.values) +
                " lists, objects, texts and booleans; give much data as " + "lists of numbers or in base64";
      return false;
    }
    if (stack_.empty()) {
      root = std::move(json);
      return true;
    }
    Json::Value& top = stack_.back().value;
    if (auto* object = std::get_if<JsonObject>(&top)) {
      object->back().second = std::move(json);
      return true;
    }
    if (auto* numbers = std::get_if<JsonNumbers>(&top)) {
      JsonArray items;
      for (size_t i = 0; i < numbers->size(); ++i) items.emplace_back().value = (*numbers)[i];
      top = std::move(items);
    }
    std::get<JsonArray>(top).push_back(std::move(json));
    return true;
  }

  const JsonLimits limits_;
  std::vector<ElidedJson::List>& lists_;
  size_t next_list_ = 0;
  size_t arrays_ = 0;
  int64_t nodes_ = 0;
  int64_t values_ = 0;
  std::vector<Json> stack_;
  std::vector<std::map<std::string, bool, std::less<>>> names_;
};

// How many edits make one name the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

template <typename T>
void append_chars(std::string& out, T value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  out.append(text, end);
}

template <typename T>
void append_real(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  } else {
    const size_t start = out.size();
    append_chars(out, value);
    // 1 is a float here: say so, that a reader keeps it one.
    if (out.find_first_of(".e", start) == std::string::npos) out += ".0";
  }
}

}  // namespace

Json Json::parse(std::string_view text, const JsonLimits& limits) {
  ElidedJson elided = elide_numbers(text, limits.nodes);
  Builder builder(limits, elided);
  const std::string_view rest = elided.lists.empty() ? text : std::string_view(elided.text);
  if (nlohmann::json::sax_parse(rest.begin(), rest.end(), &builder)) return std::move(builder.root);
  const std::string_view before = text.substr(0, std::min(elided.original(builder.failed_at), text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  throw core::Error("malformed_json", builder.problem.empty() ? "the body is no JSON" : builder.problem,
                    {{"", builder.problem, static_cast<int>(line), 0}});
}

size_t Json::size() const {
  if (const auto* items = as<JsonArray>()) return items->size();
  if (const auto* numbers = as<JsonNumbers>()) return numbers->size();
  return 0;
}

Json Json::at(size_t i) const {
  if (const auto* items = as<JsonArray>()) return (*items)[i];
  Json out;
  out.value = (*as<JsonNumbers>())[i];
  return out;
}

std::string_view Json::kind_name() const {
  static constexpr std::string_view kNames[] = {"null",   "a boolean", "a number", "a string",
                                                "a list", "a list",    "an object"};
  return kNames[value.index()];
}

ObjectReader::ObjectReader(const Json& json, std::string pointer, core::Diagnostics& wrong)
    : object_(json.as<JsonObject>()), pointer_(std::move(pointer)), wrong_(wrong) {
  if (object_ == nullptr) wrong_.add(pointer_, "expected an object, got " + std::string(json.kind_name()));
}

std::string ObjectReader::pointer(std::string_view name) const { return pointer_ + "/" + pointer_token(name); }

const Json* ObjectReader::field(std::string_view name) {
  asked_.emplace_back(name);
  if (object_ == nullptr) return nullptr;
  for (const auto& [key, value] : *object_) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<std::string> ObjectReader::string(std::string_view name) {
  const Json* json = field(name);
  if (json == nullptr) return std::nullopt;
  if (const auto* text = json->as<std::string>()) return *text;
  wrong_.add(pointer(name), "expected a string, got " + std::string(json->kind_name()));
  return std::nullopt;
}

std::optional<int64_t> ObjectReader::integer(std::string_view name, int64_t low, int64_t high) {
  const Json* json = field(name);
  if (json == nullptr) return std::nullopt;
  const auto* number = json->as<JsonNumber>();
  if (number == nullptr || number->kind != JsonNumber::Kind::kSigned || number->i < low || number->i > high) {
    wrong_.add(pointer(name), "expected a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }
  return number->i;
}

std::optional<bool> ObjectReader::boolean(std::string_view name) {
  const Json* json = field(name);
  if (json == nullptr) return std::nullopt;
  if (const auto* value = json->as<bool>()) return *value;
  wrong_.add(pointer(name), "expected true or false, got " + std::string(json->kind_name()));
  return std::nullopt;
}

std::optional<double> ObjectReader::number(std::string_view name, double low, double high) {
  const Json* json = field(name);
  if (json == nullptr) return std::nullopt;
  const auto* number = json->as<JsonNumber>();
  if (number == nullptr || !(number->as_double() >= low && number->as_double() <= high)) {
    std::string text = "expected a number from ";
    append_chars(text, low);
    text += " to ";
    append_chars(text, high);
    wrong_.add(pointer(name), text);
    return std::nullopt;
  }
  return number->as_double();
}

std::optional<std::string> ObjectReader::word(std::string_view name, std::initializer_list<std::string_view> allowed) {
  const Json* json = field(name);
  if (json == nullptr) return std::nullopt;
  const auto* text = json->as<std::string>();
  if (text != nullptr && std::find(allowed.begin(), allowed.end(), *text) != allowed.end()) return *text;
  std::string list;
  for (const std::string_view word : allowed) list += (list.empty() ? "" : ", ") + quote(word);
  wrong_.add(pointer(name),
             "expected one of " + list + ", got " + (text != nullptr ? quote(*text) : std::string(json->kind_name())));
  return std::nullopt;
}

std::optional<std::vector<int64_t>> ObjectReader::integers(std::string_view name) {
  const Json* json = field(name);
  if (json == nullptr) return std::nullopt;
  if (!json->is_array()) {
    wrong_.add(pointer(name), "expected a list of whole numbers, got " + std::string(json->kind_name()));
    return std::nullopt;
  }
  std::vector<int64_t> out;
  for (size_t i = 0; i < json->size(); ++i) {
    const Json item = json->at(i);
    const auto* number = item.as<JsonNumber>();
    if (number == nullptr || number->kind != JsonNumber::Kind::kSigned) {
      wrong_.add(pointer(name) + "/" + std::to_string(i),
                 "expected a whole number, got " + std::string(item.kind_name()));
      return std::nullopt;
    }
    if (number->i >= kLargestExact || number->i <= -kLargestExact) {
      wrong_.add(pointer(name) + "/" + std::to_string(i),
                 "is beyond 9007199254740991, to which numbers are exact in JSON, got " + std::to_string(number->i));
      return std::nullopt;
    }
    out.push_back(number->i);
  }
  return out;
}

std::optional<std::vector<int64_t>> ObjectReader::integers(std::string_view name, int64_t low, int64_t high) {
  auto out = integers(name);
  if (!out) return std::nullopt;
  const auto outside = std::find_if(out->begin(), out->end(), [&](int64_t i) { return i < low || i > high; });
  if (outside == out->end()) return out;
  wrong_.add(pointer(name) + "/" + std::to_string(outside - out->begin()),
             "expected a whole number from " + std::to_string(low) + " to " + std::to_string(high) + ", got " +
                 std::to_string(*outside));
  return std::nullopt;
}

std::optional<std::vector<std::string>> ObjectReader::strings(std::string_view name) {
  const Json* json = field(name);
  if (json == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (size_t i = 0; i < json->size(); ++i) {
    const Json item = json->at(i);
    if (const auto* text = item.as<std::string>()) {
      out.push_back(*text);
    } else {
      wrong_.add(pointer(name) + "/" + std::to_string(i), "expected a string, got " + std::string(item.kind_name()));
      return std::nullopt;
    }
  }
  if (!json->is_array()) {
    wrong_.add(pointer(name), "expected a list of strings, got " + std::string(json->kind_name()));
    return std::nullopt;
  }
  return out;
}

void ObjectReader::missing(std::string_view name) { wrong_.add(pointer(name), "is missing"); }

void ObjectReader::finish() {
  if (object_ == nullptr) return;
  for (const auto& [key, value] : *object_) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    if (!has_room(wrong_)) return;
    std::string hint;
    size_t best = 3;
    for (const std::string& known : asked_) {
      // Other lengths are no slips of the finger.
      if (key.size() > known.size() + best) continue;
      const size_t edits = distance(key, known);
      if (edits < best) {
        best = edits;
        hint = "; did you mean " + quote(known) + "?";
      }
    }
    wrong_.add(pointer(key), "is not a field that is known here" + hint);
  }
}

std::string pointer_token(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

void append_string(std::string& out, std::string_view text) {
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string quote(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

void append_integer(std::string& out, int64_t value) {
  const bool as_text = value > kLargestExact || value < -kLargestExact;
  if (as_text) out += '"';
  append_chars(out, value);
  if (as_text) out += '"';
}

void append_unsigned(std::string& out, uint64_t value) {
  const bool as_text = value > static_cast<uint64_t>(kLargestExact);
  if (as_text) out += '"';
  append_chars(out, value);
  if (as_text) out += '"';
}

void append_float(std::string& out, float value) { append_real(out, value); }

void append_double(std::string& out, double value) { append_real(out, value); }

std::string integer_list(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_integer(out, values[i]);
  }
  return out + "]";
}

}  // namespace meshd::api
