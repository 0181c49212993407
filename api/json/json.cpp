#include "api/json/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/json/elide.h"

namespace meshd::api {
namespace {

/// A vector that grows has its old entries and twice as many new ones at once.
constexpr int64_t kGrowth = 3;
constexpr int64_t kNameBytes = 96;  // of a name in the set of an open object
// Held at once, so that a value does not cost two atomic additions: as much as was held before.
constexpr int64_t kLeastStep = 4 * 1024, kMostStep = 256 * 1024;

constexpr std::string_view kNotFinite = R"(; what is not finite is written "NaN", "Infinity" or "-Infinity")";

// What Python and JavaScript print for values that JSON writes otherwise. `rest` begins with the character that was
// read last.
std::string_view advice_on(std::string_view rest) {
  if (rest.starts_with("NaN") || rest.starts_with("Infinity")) return kNotFinite;
  if (rest.starts_with("None") || rest.starts_with("undefined")) return "; nothing is written null";
  if (rest.starts_with("True") || rest.starts_with("False")) return "; truth is written true or false";
  return "";
}

/// What parsing takes: counted by value, held in steps, ahead of what is counted.
class HeldBytes {
 public:
  explicit HeldBytes(core::MemoryReservation* memory) : memory_(memory) {}
  void add(int64_t bytes) {
    if (memory_ == nullptr) return;
    ahead_ -= bytes;
    if (ahead_ >= 0) return;
    const int64_t step = std::max(std::clamp(held_, kLeastStep, kMostStep), -ahead_);
    memory_->grow(step);
    held_ += step;
    ahead_ += step;
  }

 private:
  core::MemoryReservation* memory_;
  int64_t ahead_ = 0, held_ = 0;
};

// Builds Json values and stops at the limits.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `elided` has what was taken out of the text.
  Builder(const JsonLimits& limits, ElidedJson& elided, core::MemoryReservation* memory)
      : limits_(limits), lists_(elided.lists), elided_strings_(elided.strings), held_(memory) {}

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
    restore(value);
    held_.add(static_cast<int64_t>(value.size()));
    Json json;
    json.value = std::move(value);
    return add(std::move(json));
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override { return open(JsonObject{}); }
  bool key(string_t& value) override {
    restore(value);
    auto& object = std::get<JsonObject>(stack_.back().value);
    auto& names = names_.back();
    if (!names.emplace(value, true).second) {
      problem = "the name " + quote(value) + " occurs twice in one object";
      return false;
    }
    held_.add(kGrowth * static_cast<int64_t>(sizeof(JsonObject::value_type)) + kNameBytes +
              2 * static_cast<int64_t>(value.size()));
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
    const auto erase_to = [this](std::string_view end) {
      if (const size_t at = problem.find(end); at != std::string::npos) problem.erase(0, at + end.size());
    };
    if (problem.starts_with('[')) erase_to("] ");  // [json.exception.parse_error.101]
    if (problem.starts_with("parse error at")) erase_to(": ");
    if (problem.find("number overflow") != std::string::npos) problem += kNotFinite;
    return false;
  }

  Json root;
  std::string problem;
  size_t failed_at = 0;

 private:
  // The string whose turn it is, where it was elided.
  void restore(string_t& value) {
    const size_t string = strings_++;
    if (next_string_ == elided_strings_.size() || elided_strings_[next_string_].string != string) return;
    value = elided_strings_[next_string_++].value;
  }
  bool count() {
    if (++nodes_ <= limits_.nodes) return true;
    problem = fmt::format("more than {} values", limits_.nodes);
    return false;
  }
  bool open(Json::Value value) {
    if (static_cast<int>(stack_.size()) >= limits_.depth) {
      problem = fmt::format("nested deeper than {} levels", limits_.depth);
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
        held_.add(kGrowth * static_cast<int64_t>(sizeof(JsonNumber)));
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
      problem = fmt::format(
          "more than {} lists, objects, texts and booleans; give much data as lists of numbers or in base64",
          limits_.values);
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
    held_.add(kGrowth * static_cast<int64_t>(sizeof(Json)));
    if (auto* numbers = std::get_if<JsonNumbers>(&top)) {
      held_.add(kGrowth * static_cast<int64_t>(numbers->size() * sizeof(Json)));
      JsonArray items;
      numbers->each([&](size_t, const JsonNumber& before) {
        items.emplace_back().value = before;
        return true;
      });
      top = std::move(items);
    }
    std::get<JsonArray>(top).push_back(std::move(json));
    return true;
  }

  const JsonLimits limits_;
  std::vector<ElidedJson::List>& lists_;
  const std::vector<ElidedJson::String>& elided_strings_;
  HeldBytes held_;
  size_t next_list_ = 0, next_string_ = 0;
  size_t arrays_ = 0, strings_ = 0;
  int64_t nodes_ = 0;
  int64_t values_ = 0;
  std::vector<Json> stack_;
  std::vector<std::map<std::string, bool, std::less<>>> names_;
};

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
    // 1 is a float here: written as 1.0, so that a reader keeps it one.
    if (out.find_first_of(".e", start) == std::string::npos) out += ".0";
  }
}

}  // namespace

Json Json::parse(std::string text, const JsonLimits& limits, core::MemoryReservation* memory) {
  return parse(std::make_shared<const std::string>(std::move(text)), limits, memory);
}

Json Json::parse(std::shared_ptr<const std::string> shared, const JsonLimits& limits, core::MemoryReservation* memory) {
  const std::string_view text = *shared;
  HeldBytes lists(memory);
  ElidedJson elided = elide_bulk_values(shared, limits.nodes, limits.values, [&](size_t characters) {
    lists.add(kGrowth * static_cast<int64_t>(sizeof(ElidedJson::List) + characters));
  });
  Builder builder(limits, elided, memory);
  const std::string_view rest = elided.cuts.empty() ? text : std::string_view(elided.text);
  if (nlohmann::json::sax_parse(rest.begin(), rest.end(), &builder)) return std::move(builder.root);
  const std::string_view before = text.substr(0, std::min(elided.original(builder.failed_at), text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto column = before.size() - std::min(before.rfind('\n') + 1, before.size());  // of the last character read
  if (!before.empty()) builder.problem += advice_on(text.substr(before.size() - 1));
  throw core::Error("malformed_json", builder.problem.empty() ? "the body is no JSON" : builder.problem,
                    {{"", builder.problem, static_cast<int>(line), static_cast<int>(column)}});
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

std::string got_text(const Json& json) {
  const auto* number = json.as<JsonNumber>();
  if (number == nullptr) return std::string(json.kind_name());
  if (number->kind == JsonNumber::Kind::kSigned) return fmt::format("{}", number->i);
  return number->kind == JsonNumber::Kind::kUnsigned ? fmt::format("{}", number->u) : fmt::format("{}", number->f);
}

JsonArray Json::elements() const {
  JsonArray out;
  out.reserve(size());
  each([&](size_t, const Json& item) {
    out.push_back(item);
    return true;
  });
  return out;
}

const Json* Json::find(std::string_view name) const {
  const auto* object = as<JsonObject>();
  if (object == nullptr) return nullptr;
  for (const auto& [key, item] : *object) {
    if (key == name) return &item;
  }
  return nullptr;
}

bool expect_list(const Json& json, const std::string& pointer, core::Diagnostics& wrong) {
  if (!json.is_array()) wrong.add(pointer, fmt::format("expected a list, got {}", json.kind_name()));
  return json.is_array();
}

const JsonObject* expect_object(const Json& json, const std::string& pointer, core::Diagnostics& wrong) {
  const auto* object = json.as<JsonObject>();
  if (object == nullptr) wrong.add(pointer, fmt::format("expected an object, got {}", json.kind_name()));
  return object;
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

std::string entry_pointer(const std::string& list, size_t i) { return fmt::format("{}/{}", list, i); }

void append_string(std::string& out, std::string_view text) {
  const bool is_plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (is_plain) {
    out.append(1, '"').append(text).append(1, '"');
    return;
  }
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string quote(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

std::string in_ascii(std::string_view json) {
  const bool is_ascii = std::all_of(json.begin(), json.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return is_ascii ? std::string(json) : nlohmann::ordered_json::parse(json).dump(-1, ' ', true);
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

}  // namespace meshd::api
