#include "api/codecs/runs/trees.h"

#include <fmt/core.h>

#include <algorithm>

namespace meshd::api {
namespace {

constexpr std::string_view kStar = "*";
constexpr std::string_view kDropped = "-";

// A place whose value the program does not take.
bool is_dropped(const Json& json) {
  const auto* text = json.as<std::string>();
  return text != nullptr && *text == kDropped;
}

bool is_sharding(const Json& json) {
  const auto* object = json.as<JsonObject>();
  return object != nullptr && std::any_of(object->begin(), object->end(), [](const auto& field) {
           return field.first == "spec" || field.first == "parts" || field.first == "sdy";
         });
}

bool is_leaf(const Json& json, Leaves leaves) {
  switch (leaves) {
    case Leaves::kStars: {
      const auto* text = json.as<std::string>();
      return text != nullptr && *text == kStar;
    }
    case Leaves::kValues:
      return !json.is_array() && json.as<JsonObject>() == nullptr && !json.is_null();
    case Leaves::kSpecs:
      return (!json.is_array() && json.as<JsonObject>() == nullptr) || is_sharding(json);
  }
  return false;
}

// Fields of an object by name; they stay where they are.
class Fields {
 public:
  using Field = JsonObject::value_type;

  explicit Fields(const JsonObject& object) {
    for (const Field& field : object) sorted_.push_back(&field);
    std::sort(sorted_.begin(), sorted_.end(), [](const Field* a, const Field* b) { return a->first < b->first; });
  }
  [[nodiscard]] const std::vector<const Field*>& in_order() const { return sorted_; }
  [[nodiscard]] const Json* find(const std::string& name) const {
    const auto at =
        std::lower_bound(sorted_.begin(), sorted_.end(), name,
                         [](const Field* field, const std::string& wanted) { return field->first < wanted; });
    return at != sorted_.end() && (*at)->first == name ? &(*at)->second : nullptr;
  }

 private:
  std::vector<const Field*> sorted_;
};

// How the texts of trees differ: Python's, for messages, and JSON.
struct TreeStyle {
  std::string_view separator;
  std::string (*name)(std::string_view);
};
constexpr TreeStyle kPython{", ", [](std::string_view name) { return fmt::format("'{}': ", name); }};
constexpr TreeStyle kJson{",", [](std::string_view name) { return quote(name) + ":"; }};

// Appends a tree, fields of objects in the order of their names. `leaf` appends what is a leaf for it, and gives false
// for lists and objects that are none.
template <typename Leaf>
void append_tree(std::string& out, const Json& tree, const std::string& pointer, const TreeStyle& style, Leaf& leaf) {
  if (leaf(tree, pointer)) return;
  if (const auto* object = tree.as<JsonObject>()) {
    std::string_view before = "{";
    const Fields fields(*object);
    for (const Fields::Field* field : fields.in_order()) {
      out.append(before).append(style.name(field->first));
      before = style.separator;
      append_tree(out, field->second, pointer + "/" + pointer_token(field->first), style, leaf);
    }
    out += object->empty() ? "{}" : "}";
    return;
  }
  out += "[";
  tree.each([&](size_t i, const Json& inner) {
    if (i > 0) out += style.separator;
    append_tree(out, inner, entry_pointer(pointer, i), style, leaf);
    return true;
  });
  out += "]";
}

bool is_node(const Json& json) { return json.is_array() || json.as<JsonObject>() != nullptr; }

void append_text(std::string& out, const Json& tree, Leaves leaves) {
  const auto leaf = [&](const Json& json, const std::string&) {
    if (is_node(json) && !is_leaf(json, leaves)) return false;
    const bool is_place = leaves == Leaves::kStars && is_dropped(json);
    out += is_leaf(json, leaves) ? kStar : json.is_null() ? "None" : is_place ? kDropped : "?";
    return true;
  };
  append_tree(out, tree, "", kPython, leaf);
}

// The structure of `value` to the depth of `places`.
void append_given(std::string& out, const Json& places, const Json& value) {
  if (is_leaf(places, Leaves::kStars) || is_dropped(places)) {
    out += is_dropped(places) ? kDropped : kStar;
  } else if (places.is_array() && value.is_array()) {
    out += "[";
    const JsonArray inner = places.elements();
    value.each([&](size_t i, const Json& item) {
      out += i ? ", " : "";
      append_given(out, i < inner.size() ? inner[i] : Json{std::string(kStar)}, item);
      return true;
    });
    out += "]";
  } else if (places.as<JsonObject>() != nullptr && value.as<JsonObject>() != nullptr) {
    out += "{";
    bool first = true;
    const Fields known(*places.as<JsonObject>());
    const Fields fields(*value.as<JsonObject>());
    for (const Fields::Field* field : fields.in_order()) {
      const auto& [name, inner] = *field;
      const Json* place = known.find(name);
      out += std::string(first ? "'" : ", '") + name + "': ";
      first = false;
      append_given(out, place != nullptr ? *place : Json{std::string(kStar)}, inner);
    }
    out += "}";
  } else {
    append_text(out, value, Leaves::kValues);
  }
}

bool collect(const Json& places, const Json& value, const std::string& pointer, std::vector<TreeLeaf>& out) {
  if (is_leaf(places, Leaves::kStars)) {
    out.push_back({value, pointer});
    return true;
  }
  if (is_dropped(places)) return true;
  if (places.is_null()) return value.is_null();
  if (places.is_array()) {
    if (!value.is_array() || value.size() != places.size()) return false;
    const JsonArray inner = places.elements();
    bool good = true;
    value.each([&](size_t i, const Json& item) {
      good = collect(inner[i], item, entry_pointer(pointer, i), out);
      return good;
    });
    return good;
  }
  const auto* object = places.as<JsonObject>();
  const auto* given = value.as<JsonObject>();
  if (object == nullptr || given == nullptr || object->size() != given->size()) return false;
  const Fields given_fields(*given);
  const Fields fields(*object);
  for (const Fields::Field* field : fields.in_order()) {
    const auto& [name, inner] = *field;
    const Json* at = given_fields.find(name);
    if (at == nullptr || !collect(inner, *at, pointer + "/" + pointer_token(name), out)) return false;
  }
  return true;
}

// For each value of a tree in order, whether the program takes it.
void collect_taken(const Json& places, std::vector<bool>& out) {
  if (is_leaf(places, Leaves::kStars) || is_dropped(places)) {
    out.push_back(!is_dropped(places));
  } else if (const auto* object = places.as<JsonObject>()) {
    const Fields fields(*object);
    for (const Fields::Field* field : fields.in_order()) collect_taken(field->second, out);
  } else {
    places.each([&](size_t, const Json& inner) {
      collect_taken(inner, out);
      return true;
    });
  }
}

// A list of all values of a tree with dropped places, or of those that the program takes.
bool collect_list(const Json& places, const Json& value, const std::string& pointer, std::vector<TreeLeaf>& out) {
  std::vector<bool> taken;
  collect_taken(places, taken);
  const auto count = static_cast<size_t>(std::count(taken.begin(), taken.end(), true));
  if (count == taken.size() || !value.is_array() || (value.size() != count && value.size() != taken.size()))
    return false;
  const bool has_all = value.size() == taken.size();
  value.each([&](size_t i, const Json& item) {
    if (!has_all || taken[i]) out.push_back({item, entry_pointer(pointer, i)});
    return true;
  });
  return true;
}

std::string kind_of(const Json& json) {
  if (json.is_null()) return "None";
  if (json.is_array()) return fmt::format("a list of {}", json.size());
  if (json.as<JsonObject>() != nullptr) return fmt::format("an object of {}", json.as<JsonObject>()->size());
  return "a leaf";
}

class SpecFlattener {
 public:
  SpecFlattener(Leaves leaves, std::vector<TreeLeaf>& out) : leaves_(leaves), out_(out) {}

  void walk(const Json& specs, const Json& tree, const std::string& pointer) {
    if (is_leaf(specs, Leaves::kSpecs)) {
      for (int64_t i = leaf_count(tree, leaves_); i > 0; --i) out_.push_back({specs, pointer});
      return;
    }
    if (specs.is_array() && tree.is_array() && specs.size() == tree.size()) {
      const JsonArray inner = tree.elements();
      specs.each([&](size_t i, const Json& spec) {
        walk(spec, inner[i], entry_pointer(pointer, i));
        return true;
      });
      return;
    }
    const auto* object = specs.as<JsonObject>();
    const auto* given = tree.as<JsonObject>();
    if (object != nullptr && given != nullptr && same_names(*object, *given)) {
      const Fields places(*given);
      const Fields fields(*object);
      for (const Fields::Field* field : fields.in_order()) {
        const auto& [name, inner] = *field;
        walk(inner, *places.find(name), pointer + "/" + pointer_token(name));
      }
      return;
    }
    std::string hint;
    if (specs.is_array() && specs.size() == 1) hint = "; a list of one is not the same as what is in it";
    if (specs.is_array() != tree.is_array() && !is_leaf(tree, leaves_))
      hint = "; lists and objects are different nodes";
    wrong_.add(pointer, kind_of(specs) + " where the tree has " + kind_of(tree) + hint);
  }

  void throw_if_any(const Json& specs, const Json& tree) const {
    if (wrong_.empty()) return;
    std::string detail = fmt::format("specs must be a tree prefix: {} for {}. Mismatch details ({} found)",
                                     tree_text(specs, Leaves::kSpecs), tree_text(tree, leaves_), wrong_.list().size());
    for (const core::Diagnostic& mistake : wrong_.list()) detail += ": " + mistake.pointer + " is " + mistake.detail;
    throw core::Error("invalid_spec", detail, wrong_.list());
  }

 private:
  static bool same_names(const JsonObject& a, const JsonObject& b) {
    const Fields fields(b);
    return a.size() == b.size() &&
           std::all_of(a.begin(), a.end(), [&](const auto& field) { return fields.find(field.first) != nullptr; });
  }

  Leaves leaves_;
  std::vector<TreeLeaf>& out_;
  core::Diagnostics wrong_;
};

}  // namespace

std::string tree_text(const Json& tree, Leaves leaves) {
  std::string out;
  append_text(out, tree, leaves);
  return out;
}

int64_t leaf_count(const Json& tree, Leaves leaves) {
  if (is_leaf(tree, leaves)) return 1;
  int64_t count = 0;
  tree.each([&](size_t, const Json& inner) {
    count += leaf_count(inner, leaves);
    return true;
  });
  if (const auto* object = tree.as<JsonObject>()) {
    for (const auto& [name, inner] : *object) count += leaf_count(inner, leaves);
  }
  return count;
}

std::vector<TreeLeaf> flatten(const Json& places, const Json& value, const std::string& pointer) {
  std::vector<TreeLeaf> out;
  if (collect(places, value, pointer, out)) return out;
  out.clear();
  if (collect_list(places, value, pointer, out)) return out;
  std::string given;
  append_given(given, places, value);
  throw core::Error("invalid_argument", "Expected " + tree_text(places, Leaves::kStars) + ", got " + given);
}

std::vector<TreeLeaf> flatten_specs(const Json& specs, const Json& tree, Leaves leaves, const std::string& pointer) {
  std::vector<TreeLeaf> out;
  SpecFlattener flattener(leaves, out);
  flattener.walk(specs, tree, pointer);
  flattener.throw_if_any(specs, tree);
  return out;
}

std::string tree_json(const Json& places, const std::string& pointer) {
  std::string out;
  const auto leaf = [&](const Json& json, const std::string& at) {
    if (is_node(json)) return false;
    if (!json.is_null() && !is_leaf(json, Leaves::kStars) && !is_dropped(json)) {
      throw core::Error("invalid_request", at + ": a tree has lists, objects, null, '*' for each value, and '-' for "
                                                "one that the program does not take");
    }
    out += json.is_null() ? "null" : quote(is_dropped(json) ? kDropped : kStar);
    return true;
  };
  append_tree(out, places, pointer, kJson, leaf);
  return out;
}

std::string numbered_tree(const Json& places) {
  std::string out;
  int64_t next = 0;
  const auto leaf = [&](const Json& json, const std::string&) {
    if (is_node(json)) return false;
    if (is_leaf(json, Leaves::kStars)) {
      append_integer(out, next++);
    } else {
      out += "null";
    }
    return true;
  };
  append_tree(out, places, "", kJson, leaf);
  return out;
}

}  // namespace meshd::api
