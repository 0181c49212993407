// Python's own functions, as far as static values and arrays need them; functools and math.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "service/numpy/functions/shared.h"
#include "service/numpy/syntax/limits.h"

namespace meshd::numpy {
namespace {

Value abs_value(Tracer& t, const Value& x) {
  if (x.array() != nullptr) return abs_of(t, *x.array());
  if (const auto* both = x.as<std::complex<double>>()) return std::abs(*both);
  return t.truth(t.comparison("<", x, int64_t{0}), "abs") ? t.unary("-", x) : t.unary("+", x);
}

// max(a, b, ...) and max(list): of static values, or of scalars.
Value extreme_value(Tracer& t, const Arguments& a, bool is_max) {
  std::vector<Value> items = a.all("values");
  if (items.size() == 1) items = t.items_of(items[0], is_max ? "max" : "min");
  if (items.empty()) t.refuse("max and min take at least one value");
  Value best = items[0];
  for (size_t i = 1; i < items.size(); ++i) {
    const Value before = t.comparison(is_max ? ">" : "<", items[i], best);
    if (before.array() != nullptr)
      t.refuse(
          "max and min of Python compare arrays while the program is traced; use jnp.maximum, jnp.minimum, jnp.max or "
          "jnp.min");
    if (t.truth(before, "max")) best = items[i];
  }
  return best;
}

// float("inf") and its like; numbers are written as numbers.
Value infinite(Tracer& t, const std::string& text) {
  if (text == "inf" || text == "infinity") return std::numeric_limits<double>::infinity();
  if (text == "-inf" || text == "-infinity") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  t.refuse("of texts float takes 'inf', '-inf' and 'nan', got '" + text + "'");
}

Value code_of(Tracer& t, const Arguments& a) {
  const std::string text = t.to_text(a["c"], "ord");
  if (text.size() != 1 || static_cast<unsigned char>(text[0]) > 127) t.refuse("ord takes one character of ASCII here");
  return int64_t{text[0]};
}

// Stable in both directions, as Python's.
Value sorted_values(Tracer& t, const Arguments& a) {
  const std::vector<Value> items = t.items_of(a["items"], "sorted");
  std::vector<std::pair<Value, Value>> keyed;  // what is compared, and the item
  for (const Value& item : items)
    keyed.emplace_back(a["key"].is_none() ? item : t.call(a["key"], std::vector<Value>{item}), item);
  const bool is_reverse = t.to_bool(a["reverse"], "reverse");
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& x, const auto& y) {
    return is_reverse ? t.truth(t.comparison("<", y.first, x.first), "sorted")
                      : t.truth(t.comparison("<", x.first, y.first), "sorted");
  });
  std::vector<Value> out;
  for (auto& each : keyed) out.push_back(std::move(each.second));
  return list_of(std::move(out), t.region_depth());
}

// int(x), float(x): of static values.
Value converted_number(Tracer& t, const Value& x, const char* name) {
  if (x.array() != nullptr) {
    t.refuse(fmt::format("{}(x) needs to know x while the program is traced; x.astype({}) converts an array", name,
                         std::string(name) == "int" ? "jnp.int32" : "jnp.float32"));
  }
  if (const auto* text = x.as<std::string>(); text != nullptr && std::string(name) == "float")
    return infinite(t, *text);
  const double real = t.to_float(x, name);
  if (std::string(name) == "float") return real;
  if (x.is<int64_t>() || x.is<bool>()) return t.to_int(x, name);
  if (!(std::abs(real) < 9.2e18)) t.refuse("the float does not fit in an int");
  return static_cast<int64_t>(real);
}

Value range_of(Tracer& t, const Arguments& a) {
  const std::vector<Value>& given = a.all("bounds");
  if (given.empty() || given.size() > 3) t.refuse("range takes one to three numbers");
  auto made = std::make_shared<Range>();
  made->start = given.size() > 1 ? given[0] : Value(int64_t{0});
  made->stop = given[given.size() > 1 ? 1 : 0];
  made->step = given.size() > 2 ? given[2] : Value(int64_t{1});
  for (Value* each : {&made->start, &made->stop, &made->step}) {
    if (each->is<bool>()) *each = t.to_int(*each, "range");
    if (each->array() == nullptr) t.to_int(*each, "a bound of range");
    if (each->array() != nullptr && (each->array()->rank() != 0 || !tensor::is_integer(each->array()->dtype())))
      t.refuse("range takes whole numbers, got " + describe(*each));
  }
  if (made->step.is<int64_t>() && *made->step.as<int64_t>() == 0) t.refuse("the step of a range cannot be 0");
  return RangeRef(std::move(made));
}

Value zipped(Tracer& t, const Arguments& a) {
  std::vector<std::vector<Value>> columns;
  size_t count = a.all("lists").empty() ? 0 : kMaxStaticElements;
  for (const Value& list : a.all("lists")) {
    columns.push_back(t.items_of(list, "zip"));
    count = std::min(count, columns.back().size());
  }
  std::vector<Value> out;
  for (size_t i = 0; i < count; ++i) {
    std::vector<Value> row;
    for (const auto& column : columns) row.push_back(column[i]);
    out.push_back(tuple_of(std::move(row)));
  }
  return list_of(std::move(out), t.region_depth());
}

Value is_instance(Tracer& t, const Arguments& a) {
  const Value& x = a["x"];
  std::vector<Value> kinds{a["kind"]};
  if (const Sequence* several = a["kind"].sequence()) kinds = several->items;
  for (const Value& kind : kinds) {
    const auto* function = kind.as<CallableRef>();
    if (function == nullptr)
      t.refuse("isinstance knows int, float, bool, complex, str, tuple, list, dict and jnp.ndarray");
    const std::string& name = (*function)->name;
    const bool is = name == "int"           ? x.is<int64_t>() || x.is<bool>()
                    : name == "float"       ? x.is<double>()
                    : name == "bool"        ? x.is<bool>()
                    : name == "complex"     ? x.is<std::complex<double>>()
                    : name == "str"         ? x.is<std::string>()
                    : name == "tuple"       ? x.sequence() != nullptr && x.sequence()->is_tuple
                    : name == "jnp.ndarray" ? x.array() != nullptr
                    : name == "list"        ? x.sequence() != nullptr && !x.sequence()->is_tuple
                                            : name == "dict" && x.is<DictRef>();
    if (is) return true;
  }
  return false;
}

Value any_or_all(Tracer& t, const Arguments& a, bool is_any) {
  for (const Value& item : t.items_of(a["items"], is_any ? "any" : "all")) {
    if (t.truth(item, is_any ? "any" : "all") == is_any) return is_any;
  }
  return !is_any;
}

FunctionRow math_row(const char* name, double (*function)(double)) {
  return {std::string("math.") + name, "x", [function, name](Tracer& t, const Arguments& a) -> Value {
            const double out = function(t.to_float(a["x"], name));
            if (std::isnan(out)) t.refuse(std::string("math.") + name + " of a number outside of its domain");
            return out;
          }};
}

Value rounded_int(Tracer& t, double value) {
  if (!(std::abs(value) < 9.2e18)) t.refuse("the float does not fit in an int");
  return static_cast<int64_t>(value);
}

// round(x) is an int, round(x, 2) a float; round of an array is jnp.round, as in JAX.
Value round_value(Tracer& t, const Arguments& a) {
  const Value& digits = a["ndigits"];
  if (a["x"].array() != nullptr)
    return t.call(*t.globals().find("jnp.round"), {a["x"], digits.is_none() ? Value(int64_t{0}) : digits});
  const double x = t.to_float(a["x"], "round");
  if (digits.is_none()) return rounded_int(t, std::nearbyint(x));
  const int64_t places = t.to_int(digits, "ndigits");
  if (a["x"].is<int64_t>() && places >= 0) return a["x"];
  if (places < 0 || places > 15) t.refuse("round takes 0 to 15 digits here");
  // The nearest decimal, which is what Python gives: text rounds the exact value of the double.
  return std::stod(fmt::format("{:.{}f}", x, places));
}

}  // namespace

std::vector<FunctionRow> builtin_functions() {
  return {
      {"builtins.len", "x",
       [](Tracer& t, const Arguments& a) -> Value {
         if (const Array* held = a["x"].array()) {
           if (held->rank() == 0) t.refuse("len of an array without dimensions");
           return held->dims()[0];
         }
         return static_cast<int64_t>(t.items_of(a["x"], "len").size());
       }},
      {"builtins.range", "*bounds", range_of},
      {"builtins.abs", "x", [](Tracer& t, const Arguments& a) { return abs_value(t, a["x"]); }},
      {"builtins.int", "x=0", [](Tracer& t, const Arguments& a) { return converted_number(t, a["x"], "int"); }},
      {"builtins.float", "x=0.0", [](Tracer& t, const Arguments& a) { return converted_number(t, a["x"], "float"); }},
      {"builtins.ord", "c", code_of},
      {"builtins.chr", "i",
       [](Tracer& t, const Arguments& a) -> Value {
         const int64_t code = t.to_int(a["i"], "chr");
         if (code < 0 || code > 127) t.refuse("chr takes 0 to 127, the codes of ASCII, here");
         return std::string(1, static_cast<char>(code));
       }},
      {"builtins.bool", "x=False", [](Tracer& t, const Arguments& a) -> Value { return t.truth(a["x"], "bool"); }},
      {"builtins.complex", "re=0.0, im=0.0",
       [](Tracer& t, const Arguments& a) -> Value {
         return std::complex<double>(t.to_float(a["re"], "complex"), t.to_float(a["im"], "complex"));
       }},
      {"builtins.str", "x=''",
       [](Tracer& t, const Arguments& a) -> Value {
         if (const auto* integer = a["x"].as<int64_t>()) return std::to_string(*integer);
         t.to_text(a["x"], "str");
         return a["x"];
       }},
      {"builtins.tuple", "items=()",
       [](Tracer& t, const Arguments& a) { return tuple_of(t.items_of(a["items"], "tuple")); }},
      {"builtins.list", "items=()",
       [](Tracer& t, const Arguments& a) { return list_of(t.items_of(a["items"], "list"), t.region_depth()); }},
      {"builtins.slice", "*bounds",
       [](Tracer& t, const Arguments& a) -> Value {
         const std::vector<Value>& bounds = a.all("bounds");
         if (bounds.empty() || bounds.size() > 3) t.refuse("slice takes one to three bounds");
         if (bounds.size() == 1) return std::make_shared<const Slice>(Slice{None{}, bounds[0], None{}});
         return std::make_shared<const Slice>(Slice{bounds[0], bounds[1], bounds.size() == 3 ? bounds[2] : Value()});
       }},
      {"builtins.dict", "**items", [](Tracer&, const Arguments& a) { return a["items"]; }},
      {"builtins.max", "*values", [](Tracer& t, const Arguments& a) { return extreme_value(t, a, true); }},
      {"builtins.min", "*values", [](Tracer& t, const Arguments& a) { return extreme_value(t, a, false); }},
      {"builtins.sum", "items, start=0",
       [](Tracer& t, const Arguments& a) {
         Value out = a["start"];
         for (const Value& item : t.items_of(a["items"], "sum")) out = t.binary("+", out, item);
         return out;
       }},
      {"builtins.pow", "x, y", [](Tracer& t, const Arguments& a) { return t.binary("**", a["x"], a["y"]); }},
      {"builtins.divmod", "x, y",
       [](Tracer& t, const Arguments& a) {
         return tuple_of({t.binary("//", a["x"], a["y"]), t.binary("%", a["x"], a["y"])});
       }},
      {"builtins.zip", "*lists", zipped},
      {"builtins.enumerate", "items, start=0",
       [](Tracer& t, const Arguments& a) {
         std::vector<Value> out;
         Value at = t.to_int(a["start"], "start");
         for (const Value& item : t.items_of(a["items"], "enumerate")) {
           out.push_back(tuple_of({at, item}));
           at = t.binary("+", at, int64_t{1});
         }
         return list_of(std::move(out), t.region_depth());
       }},
      {"builtins.reversed", "items",
       [](Tracer& t, const Arguments& a) {
         std::vector<Value> items = t.items_of(a["items"], "reversed");
         std::reverse(items.begin(), items.end());
         return list_of(std::move(items), t.region_depth());
       }},
      {"builtins.sorted", "items, *, key=None, reverse=False", sorted_values},
      {"builtins.filter", "function, items",
       [](Tracer& t, const Arguments& a) {
         std::vector<Value> out;
         for (const Value& item : t.items_of(a["items"], "filter")) {
           const Value test = a["function"].is_none() ? item : t.call(a["function"], std::vector<Value>{item});
           if (t.truth(test, "filter")) out.push_back(item);
         }
         return list_of(std::move(out), t.region_depth());
       }},
      {"builtins.map", "function, items",
       [](Tracer& t, const Arguments& a) {
         std::vector<Value> out;
         for (const Value& item : t.items_of(a["items"], "map"))
           out.push_back(t.call(a["function"], std::vector<Value>{item}));
         return list_of(std::move(out), t.region_depth());
       }},
      {"builtins.any", "items", [](Tracer& t, const Arguments& a) { return any_or_all(t, a, true); }},
      {"builtins.all", "items", [](Tracer& t, const Arguments& a) { return any_or_all(t, a, false); }},
      {"builtins.round", "x, ndigits=None", round_value},
      {"builtins.isinstance", "x, kind", is_instance},
      {"jnp.ndarray", "*given", [](Tracer& t, const Arguments&) -> Value { t.refuse("jnp.array makes an array"); }},
      {"functools.partial", "function, *given, **named",
       [](Tracer&, const Arguments& a) -> Value {
         auto made = std::make_shared<Callable>();
         made->name = "partial";
         made->call = [function = a["function"], given = a.all("given"), named = *a["named"].as<DictRef>()](
                          Tracer& t, CallArguments more) {
           t.count_steps(static_cast<int64_t>(given.size() + named->items.size() * (1 + more.keywords.size() / 16)));
           CallArguments all{given, {}};
           all.positional.insert(all.positional.end(), more.positional.begin(), more.positional.end());
           for (const auto& item : named->items) {
             const bool is_replaced = std::any_of(more.keywords.begin(), more.keywords.end(),
                                                  [&](const auto& each) { return each.first == item.first; });
             if (!is_replaced) all.keywords.push_back(item);
           }
           all.keywords.insert(all.keywords.end(), more.keywords.begin(), more.keywords.end());
           return t.call(function, std::move(all));
         };
         return CallableRef(std::move(made));
       }},
      {"functools.reduce", "function, items, initial=None",
       [](Tracer& t, const Arguments& a) {
         std::vector<Value> items = t.items_of(a["items"], "reduce");
         if (!a["initial"].is_none()) items.insert(items.begin(), a["initial"]);
         if (items.empty()) t.refuse("reduce of nothing");
         Value out = items[0];
         for (size_t i = 1; i < items.size(); ++i) out = t.call(a["function"], std::vector<Value>{out, items[i]});
         return out;
       }},
      math_row("sqrt", [](double x) { return std::sqrt(x); }),
      math_row("log", [](double x) { return std::log(x); }),
      math_row("log2", [](double x) { return std::log2(x); }),
      math_row("exp", [](double x) { return std::exp(x); }),
      math_row("sin", [](double x) { return std::sin(x); }),
      math_row("cos", [](double x) { return std::cos(x); }),
      {"math.floor", "x",
       [](Tracer& t, const Arguments& a) { return rounded_int(t, std::floor(t.to_float(a["x"], "floor"))); }},
      {"math.ceil", "x",
       [](Tracer& t, const Arguments& a) { return rounded_int(t, std::ceil(t.to_float(a["x"], "ceil"))); }},
      {"math.prod", "items",
       [](Tracer& t, const Arguments& a) {
         Value out = int64_t{1};
         for (const Value& item : t.items_of(a["items"], "prod")) out = t.binary("*", out, item);
         return out;
       }},
  };
}

}  // namespace meshd::numpy
