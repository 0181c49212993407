// Expressions: each gives a value.
#include <fmt/core.h>

#include <algorithm>

#include "service/core/near_names.h"
#include "service/numpy/trace/depth.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

void Tracer::step(int64_t count) {
  steps_ += count;
  if (steps_ > kMaxTraceSteps)
    refuse(fmt::format(
        "the program takes more than {} steps to trace; loops over range(n) with n an array are not unrolled",
        kMaxTraceSteps));
}

Value Tracer::made_text(std::string text) {
  if (text.size() > kMaxStringBytes) refuse("the text is longer than is kept");
  step(static_cast<int64_t>(text.size() / 16));
  return text;
}

Value* Tracer::find_item(const DictRef& dict, std::string_view key) {
  step(static_cast<int64_t>(dict->items.size() / 16));
  const auto found =
      std::find_if(dict->items.begin(), dict->items.end(), [&](const auto& item) { return item.first == key; });
  return found == dict->items.end() ? nullptr : &found->second;
}

Tracer::Names Tracer::names_of(const ScopeRef& scope) {
  step(static_cast<int64_t>(scope->names.size()));
  return scope->names;
}

Value* Tracer::find_name(std::string_view name, const ScopeRef& scope) {
  for (Scope* at = scope.get(); at != nullptr; at = at->parent.get()) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return &found->second;
  }
  return nullptr;
}

void Tracer::unknown_name(const std::string& name, const ScopeRef& scope) {
  std::vector<std::string> known = globals_.names();
  for (Scope* at = scope.get(); at != nullptr; at = at->parent.get()) {
    for (const auto& [each, value] : at->names) known.push_back(each);
  }
  if (name == "print")
    refuse("'print' does nothing that a client would see; log(\"x {}\", x) writes to the log, in order");
  // A name of one letter is like too many.
  std::string near = name.size() < 2 ? "" : core::did_you_mean(name, known);
  if (near.empty() && globals_.find("jnp." + name) != nullptr) near = "; did you mean 'jnp." + name + "'?";
  refuse("the name '" + name + "' is not defined" + near);
}

Value Tracer::evaluate_name(const Expression& expression, const ScopeRef& scope) {
  if (const Value* found = find_name(expression.text, scope)) {
    if (const auto* undefined = found->as<Undefined>()) refuse(undefined->why);
    return *found;
  }
  if (const Value* global = globals_.find_name(expression.text)) return *global;
  unknown_name(expression.text, scope);
}

Value Tracer::evaluate(const Expression& expression, const ScopeRef& scope) {
  const Deeper deeper(*this);
  set_place(expression.place);
  step();
  const auto child = [&](size_t i) { return evaluate(*expression.children[i], scope); };
  switch (expression.kind) {
    case ExpressionKind::kName:
      return evaluate_name(expression, scope);
    case ExpressionKind::kNumber:
      return std::visit([](const auto& number) { return Value(number); }, expression.number);
    case ExpressionKind::kString:
      return made_text(expression.text);
    case ExpressionKind::kFormat:
      return made_text(evaluate_format(expression, scope, nullptr));
    case ExpressionKind::kConstant:
      if (expression.text == "None") return None{};
      if (expression.text == "...") return Ellipsis{};
      return expression.text == "True";
    case ExpressionKind::kTuple:
      return tuple_of(evaluate_items(expression, scope));
    case ExpressionKind::kList:
      return list_of(evaluate_items(expression, scope), region_depth());
    case ExpressionKind::kDict:
      return evaluate_dict(expression, scope);
    case ExpressionKind::kUnary: {
      const Value value = child(0);
      set_place(expression.place);
      return unary(expression.text, value);
    }
    case ExpressionKind::kBinary: {
      const Value a = child(0);
      const Value b = child(1);
      set_place(expression.place);
      return binary(expression.text, a, b);
    }
    case ExpressionKind::kCompare:
      return evaluate_compare(expression, scope);
    case ExpressionKind::kBool: {
      Value first = child(0);
      set_place(expression.place);
      if (is_condition(first)) return joined_condition(expression.text, first, [&] { return child(1); });
      return truth(first, expression.text) == (expression.text == "and") ? child(1) : first;
    }
    case ExpressionKind::kConditional:
      return evaluate_conditional(expression, scope);
    case ExpressionKind::kCall:
      return evaluate_call(expression, scope);
    case ExpressionKind::kAttribute: {
      const Value value = child(0);
      set_place(expression.place);
      return attribute(value, expression.text);
    }
    case ExpressionKind::kSubscript: {
      const Value value = child(0);
      const Value index = child(1);
      set_place(expression.place);
      return subscript(value, index);
    }
    case ExpressionKind::kSlice: {
      auto made = std::make_shared<Slice>();
      Value* const parts[] = {&made->start, &made->stop, &made->step};
      for (size_t i = 0; i < 3; ++i) {
        if (expression.children[i] != nullptr) *parts[i] = child(i);
      }
      return SliceRef(std::move(made));
    }
    case ExpressionKind::kStarred:
      refuse("a starred expression belongs in a tuple, a list or a call");
    case ExpressionKind::kLambda:
      return user_function(expression.function, scope);
    case ExpressionKind::kComprehension:
      return evaluate_comprehension(expression, scope);
  }
  return None{};
}

std::vector<Value> Tracer::evaluate_items(const Expression& expression, const ScopeRef& scope) {
  std::vector<Value> items;
  for (const ExpressionRef& child : expression.children) {
    if (child->kind != ExpressionKind::kStarred) {
      items.push_back(evaluate(*child, scope));
      continue;
    }
    const Value starred = evaluate(*child->children[0], scope);
    const std::vector<Value> more = items_of(starred, "'*'");
    items.insert(items.end(), more.begin(), more.end());
    if (items.size() > kMaxStaticElements) refuse("the tuple is longer than is kept");
  }
  step(static_cast<int64_t>(items.size()));
  return items;
}

std::string Tracer::dict_key(const Value& key) {
  const auto* number = key.as<int64_t>();
  return number != nullptr ? std::to_string(*number) : to_text(key, "a key of a dict");
}

Value Tracer::evaluate_dict(const Expression& expression, const ScopeRef& scope) {
  auto made = std::make_shared<Dict>();
  made->region = region_depth();
  const auto put = [&](const std::string& key, Value value) {
    if (Value* const found = find_item(made, key)) {
      *found = std::move(value);
    } else {
      check_key(key);
      made->items.emplace_back(key, std::move(value));
    }
  };
  if (expression.children.size() == 1) {  // a comprehension of pairs
    const Value pairs = evaluate(*expression.children[0], scope);
    for (const Value& pair : pairs.sequence()->items)
      put(dict_key(pair.sequence()->items[0]), pair.sequence()->items[1]);
  }
  for (size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    if (expression.children[i] != nullptr) {
      const std::string key = dict_key(evaluate(*expression.children[i], scope));
      put(key, evaluate(*expression.children[i + 1], scope));
      continue;
    }
    const Value others = evaluate(*expression.children[i + 1], scope);
    set_place(expression.place);
    const auto* dict = others.as<DictRef>();
    if (dict == nullptr) refuse("'**' takes a dict, got " + describe(others));
    step((*dict)->extent.nodes);
    for (const auto& [key, value] : (*dict)->items) put(key, value);
  }
  hold_items(*made);
  step(made->extent.nodes);
  return DictRef(std::move(made));
}

// first 'and' or 'or' second. A program that logs computes the second only where Python would; elsewhere nobody sees
// it.
Value Tracer::joined_condition(const std::string& word, const Value& first, const std::function<Value()>& second) {
  const auto computed = [&]() -> Value {
    const Value value = second();
    if (is_condition(value)) return value;
    return truth(value, word);
  };
  if (!has_effects_) return binary(word == "and" ? "&" : "|", first, computed());
  const auto otherwise = [&] { return std::vector<Value>{computed()}; };
  const auto short_cut = [&] { return std::vector<Value>{Value(word == "or")}; };
  if (word == "and") return branch(*first.array(), {otherwise, short_cut}, {"'and'"})[0];
  return branch(*first.array(), {short_cut, otherwise}, {"'or'"})[0];
}

// a < b < c is (a < b) and (b < c), and b is evaluated once.
Value Tracer::evaluate_compare(const Expression& expression, const ScopeRef& scope) {
  Value left = evaluate(*expression.children[0], scope);
  const auto rest = [&](auto&& self, size_t i) -> Value {
    const Deeper deeper(*this);
    for (;; ++i) {
      const Value right = evaluate(*expression.children[i + 1], scope);
      set_place(expression.place);
      const Value verdict = comparison(expression.names[i], left, right);
      if (i + 1 == expression.names.size()) return verdict;
      left = right;
      if (is_condition(verdict)) return joined_condition("and", verdict, [&] { return self(self, i + 1); });
      if (verdict.array() != nullptr)
        refuse("a chain of comparisons gives one bool, but this is " + describe(verdict) +
               "; on arrays write (a < b) & (b < c)");
      if (!truth(verdict, "a comparison")) return false;
    }
  };
  return rest(rest, 0);
}

Value Tracer::evaluate_conditional(const Expression& expression, const ScopeRef& scope) {
  const Value test = evaluate(*expression.children[0], scope);
  set_place(expression.place);
  const Array* held = test.array();
  if (held == nullptr) return evaluate(*expression.children[truth(test, "if") ? 1 : 2], scope);
  if (held->rank() != 0)
    refuse("the test of 'if' has to be a scalar, got " + describe(test) + "; jnp.where chooses by element");
  const auto side = [&](size_t i) {
    return [this, &expression, &scope, i] { return std::vector<Value>{evaluate(*expression.children[i], scope)}; };
  };
  return branch(convert(*held, DType::kBool), {side(1), side(2)}, {"the conditional expression"})[0];
}

Value Tracer::evaluate_comprehension(const Expression& expression, const ScopeRef& scope) {
  const Value iterable = evaluate(*expression.children[2], scope);
  set_place(expression.place);
  const std::vector<Value> over = items_of(iterable, "a comprehension");
  const ScopeRef inner = new_scope(scope);
  std::vector<Value> out;
  for (const Value& item : over) {
    assign(*expression.children[1], item, inner);
    bool wanted = true;
    for (size_t i = 3; wanted && i < expression.children.size(); ++i) {
      const Value test = evaluate(*expression.children[i], inner);
      wanted = truth(test, "if of a comprehension");
    }
    if (!wanted) continue;
    Value element = evaluate(*expression.children[0], inner);
    if (expression.text == "joined") {
      const std::vector<Value>& more = element.sequence()->items;
      out.insert(out.end(), more.begin(), more.end());
    } else {
      out.push_back(std::move(element));
    }
    if (out.size() > kMaxStaticElements) refuse("the list is longer than is kept");
  }
  return list_of(std::move(out), region_depth());
}

// The text of an f-string. Fields that are no static texts stay "{}" and go to `values`; null: they are refused.
std::string Tracer::evaluate_format(const Expression& expression, const ScopeRef& scope, std::vector<Value>* values) {
  std::string out = expression.names[0];
  for (size_t i = 0; i < expression.children.size(); ++i) {
    const Value value = evaluate(*expression.children[i], scope);
    set_place(expression.place);
    const std::string& format = expression.names[2 * i + 1];
    const auto* text = value.as<std::string>();
    const auto* whole = value.as<int64_t>();
    const auto* truth = value.as<bool>();
    if (format.empty() && (text != nullptr || whole != nullptr || truth != nullptr)) {
      out += text != nullptr ? *text : whole != nullptr ? std::to_string(*whole) : *truth ? "True" : "False";
    } else if (values != nullptr) {
      out += format.empty() ? "{}" : "{:" + format + "}";
      values->push_back(value);
    } else {
      refuse("an f-string takes texts, ints and bools without a format here, got " + describe(value) +
             (format.empty() ? "" : " with ':" + format + "'") + "; log(f\"...\") takes arrays");
    }
    out += expression.names[2 * i + 2];
    if (out.size() > kMaxStringBytes) refuse("the text is longer than is kept");
  }
  return out;
}

Value Tracer::evaluate_call(const Expression& expression, const ScopeRef& scope) {
  const Value callee = evaluate(*expression.children[0], scope);
  const auto* function = callee.as<CallableRef>();
  const bool takes_fields = function != nullptr && (*function)->takes_fields;
  CallArguments arguments;
  for (size_t i = 0; i < expression.names.size(); ++i) {
    const Expression& given = *expression.children[i + 1];
    const std::string& name = expression.names[i];
    if (i == 0 && name.empty() && given.kind == ExpressionKind::kFormat && takes_fields) {
      std::vector<Value> values;
      arguments.positional.push_back(made_text(evaluate_format(given, scope, &values)));
      arguments.positional.insert(arguments.positional.end(), values.begin(), values.end());
      continue;
    }
    Value value = evaluate(given, scope);
    if (name == "*") {
      const std::vector<Value> more = items_of(value, "'*'");
      arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
    } else if (name == "**") {
      const auto* dict = value.as<DictRef>();
      if (dict == nullptr) refuse("'**' takes a dict, got " + describe(value));
      step((*dict)->extent.nodes);
      for (const auto& item : (*dict)->items) arguments.keywords.push_back(item);
    } else if (name.empty()) {
      arguments.positional.push_back(std::move(value));
    } else {
      arguments.keywords.emplace_back(name, std::move(value));
    }
  }
  set_place(expression.children[0]->place);
  Value out = call(callee, std::move(arguments));
  return out;
}

}  // namespace meshd::numpy
