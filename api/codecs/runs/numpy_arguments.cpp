#include "api/codecs/runs/numpy_arguments.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/codecs/value.h"
#include "service/tensor/sizes.h"

namespace meshd::api {
namespace {

using tensor::DType;

// Looks for the kind of all elements and the shape of nested lists.
class TypeSearch {
 public:
  explicit TypeSearch(core::Diagnostics& wrong) : wrong_(wrong) {}

  std::optional<tensor::TensorType> run(const Json& json, const std::string& pointer) {
    if (!visit(json, 0, pointer)) return std::nullopt;
    const DType dtype = has_float_     ? DType::kFloat32
                        : has_integer_ ? DType::kInt32
                        : has_bool_    ? DType::kBool
                                       : DType::kFloat32;
    return tensor::TensorType{dtype, dims_};
  }

 private:
  bool fail(const std::string& pointer, std::string detail) {
    wrong_.add(pointer, std::move(detail));
    return false;
  }

  bool visit(const Json& json, size_t depth, const std::string& pointer) {
    if (!json.is_array()) return element(json, depth, pointer);
    const auto size = static_cast<int64_t>(json.size());
    if (rank_ && depth >= *rank_) return fail(pointer, "expected a number, as before, got a list");
    if (depth >= static_cast<size_t>(tensor::kMaxRank))
      return fail(pointer, "lists are nested deeper than arrays have dimensions");
    if (depth == dims_.size()) {
      dims_.push_back(size);
    } else if (dims_[depth] != size) {
      return fail(pointer, fmt::format("expected a list of {}, as before, got one of {}", dims_[depth], size));
    }
    if (size == 0 && !rank_) rank_ = depth + 1;
    bool good = true;
    json.each([&](size_t i, const Json& item) {
      good = visit(item, depth + 1, entry_pointer(pointer, i));
      return good;
    });
    return good;
  }

  bool element(const Json& json, size_t depth, const std::string& pointer) {
    if (!rank_) rank_ = depth;
    if (depth != *rank_) return fail(pointer, fmt::format("expected a list, as before, got {}", json.kind_name()));
    if (json.as<bool>() != nullptr) {
      has_bool_ = true;
    } else if (const auto* number = json.as<JsonNumber>()) {
      const bool is_float = number->kind == JsonNumber::Kind::kFloat;
      const bool fits = number->kind != JsonNumber::Kind::kUnsigned && number->i >= INT32_MIN && number->i <= INT32_MAX;
      if (!is_float && !fits) {
        return fail(pointer,
                    "a whole number that does not fit in int32, the type of whole numbers here; send an object "
                    "with dtype and data");
      }
      (is_float ? has_float_ : has_integer_) = true;
    } else if (const auto* text = json.as<std::string>();
               text != nullptr && (*text == "NaN" || *text == "Infinity" || *text == "-Infinity")) {
      has_float_ = true;
    } else {
      return fail(pointer, fmt::format("expected numbers, booleans or lists of them, got {}", json.kind_name()));
    }
    if (has_bool_ && (has_integer_ || has_float_))
      return fail(pointer, "booleans and numbers do not go together in an array");
    return true;
  }

  core::Diagnostics& wrong_;
  tensor::Dims dims_;
  std::optional<size_t> rank_;
  bool has_bool_ = false, has_integer_ = false, has_float_ = false;
};

// A VALUE, or the type of one; else a dict of arguments, whose keys may have the same names: {"data": [...], "label":
// [...]} is one.
bool is_value_object(const Json& json) {
  const auto has = [&](std::string_view name) { return json.find(name) != nullptr; };
  const auto is_text = [&](std::string_view name) {
    return has(name) && json.find(name)->as<std::string>() != nullptr;
  };
  const size_t fields = json.as<JsonObject>()->size();
  return is_text("array") || is_text("part") || is_text("base64") || (has("dtype") && has("shape")) ||
         (has("data") && (has("dtype") || has("shape") || fields == 1)) ||
         (is_text("job") && has("result") && fields <= 3);
}

// An object at any depth of lists.
bool holds_object(const Json& json) {
  if (json.as<JsonObject>() != nullptr) return true;
  const auto* items = json.as<JsonArray>();
  return items != nullptr && std::any_of(items->begin(), items->end(), holds_object);
}

class InputReader {
 public:
  InputReader(const TakeArray& take, core::Diagnostics& wrong) : take_(take), wrong_(wrong) {}

  // Numbers, texts, lists (tuples) and objects (dicts) of Python.
  numpy::Input static_input(const Json& json, const std::string& pointer) {
    using Static = numpy::Input::Static;
    if (json.is_null()) return {Static(std::monostate{})};
    if (const auto* truth = json.as<bool>()) return {Static(*truth)};
    if (const auto* text = json.as<std::string>()) return {Static(*text)};
    if (const auto* number = json.as<JsonNumber>()) {
      if (number->kind == JsonNumber::Kind::kFloat) return {Static(number->as_double())};
      if (number->kind == JsonNumber::Kind::kUnsigned) wrong_.add(pointer, "static ints have at most 63 bits");
      return {Static(number->i)};
    }
    if (json.is_array()) {
      numpy::Input::List items;
      each_entry(json, pointer, wrong_, [&](size_t, const Json& item, const std::string& place) {
        items.push_back(static_input(item, place));
      });
      return {std::move(items)};
    }
    numpy::Input::Dict items;
    for (const auto& [name, item] : *json.as<JsonObject>())
      items.emplace_back(name, static_input(item, pointer + "/" + pointer_token(name)));
    return {std::move(items)};
  }

  // An array, or a dict of arguments; texts and null are static.
  numpy::Input input(const Json& json, const std::string& pointer, bool is_static) {
    if (is_static) return static_input(json, pointer);
    const auto* text = json.as<std::string>();
    if (json.is_null() || (text != nullptr && *text != "NaN" && *text != "Infinity" && *text != "-Infinity"))
      return static_input(json, pointer);
    const auto* object = json.as<JsonObject>();
    if (object != nullptr && !is_value_object(json)) {
      numpy::Input::Dict items;
      std::vector<const JsonObject::value_type*> sorted;
      for (const auto& field : *object) sorted.push_back(&field);
      std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
      for (const auto* field : sorted)
        items.emplace_back(field->first, input(field->second, pointer + "/" + pointer_token(field->first), false));
      return {std::move(items)};
    }
    if (object != nullptr) {
      const auto type = take_(json, nullptr, pointer);
      return {numpy::Input::ArrayType{type.value_or(tensor::TensorType{}), false}};
    }
    // A list with an object in it, or in a list of it, is a list of arguments.
    if (json.is_array() && holds_object(json)) {
      numpy::Input::List list;
      each_entry(json, pointer, wrong_, [&](size_t, const Json& item, const std::string& place) {
        list.push_back(input(item, place, false));
      });
      return {std::move(list), true};
    }
    const auto expected = inferred_type(json, pointer, wrong_);
    if (!expected) return {numpy::Input::ArrayType{}};
    const auto type = take_(json, &*expected, pointer);
    const bool is_bare = !json.is_array() && expected->dtype != DType::kBool;
    return {numpy::Input::ArrayType{type.value_or(*expected), is_bare}};
  }

 private:
  const TakeArray& take_;
  core::Diagnostics& wrong_;
};

// The parameter that a key of "static" or "keywords" names, by name or by position.
std::optional<size_t> parameter_position(const numpy::Program& program, const std::string& key) {
  const auto& parameters = program.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == key) return i;
  }
  if (key.empty() || key.size() > 4 || key.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const auto position = static_cast<size_t>(std::stoul(key));
  return position < parameters.size() ? std::optional(position) : std::nullopt;
}

}  // namespace

std::optional<tensor::TensorType> inferred_type(const Json& json, const std::string& pointer,
                                                core::Diagnostics& wrong) {
  return TypeSearch(wrong).run(json, pointer);
}

numpy::Inputs read_numpy_arguments(const numpy::Program& program, const Json* arguments, const Json* keywords,
                                   const Json* statics, const TakeArray& take, core::Diagnostics& wrong) {
  InputReader reader(take, wrong);
  const auto& parameters = program.parameters();
  numpy::Inputs out;
  std::vector<bool> is_static = program.is_static;
  std::vector<std::pair<std::string, numpy::Input>> named;
  if (statics != nullptr) {
    if (const JsonObject* object = expect_object(*statics, "/static", wrong)) {
      for (const auto& [key, value] : *object) {
        const std::string pointer = "/static/" + pointer_token(key);
        const auto position = parameter_position(program, key);
        if (!position) {
          wrong.add(
              pointer,
              fmt::format("the function '{}' has no such parameter; keys are names or positions of its parameters",
                          program.main->name));
          continue;
        }
        is_static[*position] = true;
        named.emplace_back(parameters[*position].name, reader.static_input(value, pointer));
      }
    }
  }
  // Positions that are given by name already are left out; what is behind one goes by name too.
  const auto is_named = [&](const std::string& name) {
    return std::any_of(named.begin(), named.end(), [&](const auto& item) { return item.first == name; });
  };
  size_t next = 0;
  bool by_name = false;
  std::vector<std::pair<std::string, numpy::Input>> behind;
  if (arguments != nullptr && arguments->as<JsonObject>() != nullptr) {
    wrong.add("/arguments", R"(expected a list, got an object; arguments by name go under "keywords")");
  } else if (arguments != nullptr) {
    each_entry(*arguments, "/arguments", wrong, [&](size_t, const Json& json, const std::string& pointer) {
      while (next < parameters.size() && is_named(parameters[next].name)) {
        ++next;
        by_name = true;
      }
      const bool has_name =
          next < parameters.size() && (parameters[next].kind == numpy::ParameterKind::kPositional ||
                                       parameters[next].kind == numpy::ParameterKind::kPositionalOnly);
      numpy::Input input = reader.input(json, pointer, has_name && is_static[next]);
      if (by_name && has_name) {
        behind.emplace_back(parameters[next].name, std::move(input));
      } else {
        out.positional.push_back(std::move(input));
      }
      if (has_name) ++next;
    });
  }
  out.keywords = std::move(behind);
  if (keywords != nullptr) {
    if (const JsonObject* object = expect_object(*keywords, "/keywords", wrong)) {
      for (const auto& [key, value] : *object) {
        const auto position = parameter_position(program, key);
        const bool declared = position && parameters[*position].name == key && is_static[*position];
        out.keywords.emplace_back(key, reader.input(value, "/keywords/" + pointer_token(key), declared));
      }
    }
  }
  std::move(named.begin(), named.end(), std::back_inserter(out.keywords));
  return out;
}

}  // namespace meshd::api
