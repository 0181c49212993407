// Python's operators: on static values as Python computes them, on arrays as jax.numpy.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "service/numpy/syntax/limits.h"
#include "service/numpy/trace/arithmetic.h"
#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {
namespace {

bool holds_array(const Value& value) {
  bool found = false;
  for_each_leaf(value, [&](const Value& leaf) { found = found || leaf.array() != nullptr; });
  return found;
}

double as_double(const Value& value) {
  if (const auto* real = value.as<double>()) return *real;
  if (const auto* integer = value.as<int64_t>()) return static_cast<double>(*integer);
  return *value.as<bool>() ? 1 : 0;
}

int64_t as_integer(const Value& value) {
  if (const auto* integer = value.as<int64_t>()) return *integer;
  return *value.as<bool>() ? 1 : 0;
}

bool is_integer(const Value& value) { return value.is<int64_t>() || value.is<bool>(); }

std::complex<double> as_complex(const Value& value) {
  if (const auto* both = value.as<std::complex<double>>()) return *both;
  return as_double(value);
}

// a ** b of ints, or nothing where it does not fit.
std::optional<int64_t> static_power(int64_t a, int64_t b) {
  int64_t out = 1;
  for (; b > 0; b >>= 1) {
    if ((b & 1) != 0 && __builtin_mul_overflow(out, a, &out)) return std::nullopt;
    if (b > 1 && __builtin_mul_overflow(a, a, &a)) return std::nullopt;
  }
  return out;
}

std::optional<int64_t> integer_binary(std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (op == "+") return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == "-") return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == "*") return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == "**") return static_power(a, b);
  if (op == "&") return a & b;
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == ">>") return b > 62 ? (a < 0 ? -1 : 0) : a >> b;
  if (op == "<<") return b > 62 || __builtin_mul_overflow(a, int64_t{1} << b, &out) ? std::nullopt : std::optional(out);
  if (b == -1) return op == "%" ? std::optional(int64_t{0}) : integer_binary("-", 0, a);
  const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  return op == "//" ? quotient : a - quotient * b;
}

std::string bad_operands(std::string_view op, const Value& a, const Value& b) {
  return "'" + std::string(op) + "' is not possible between " + describe(a) + " and " + describe(b);
}

}  // namespace

Value Tracer::unary(std::string_view op, const Value& value) {
  if (op == "not")
    return is_condition(value) ? Value(this->op("stablehlo.not", {*value.array()})) : Value(!truth(value, "not"));
  if (const Array* held = value.array()) {
    const bool is_bool = held->dtype() == DType::kBool;
    if (op == "~") {
      if (!is_bool && !tensor::is_integer(held->dtype()))
        refuse("'~' takes integers and bools, got " + describe(value));
      return logical_not(*held);
    }
    if (is_bool) refuse("'" + std::string(op) + "' takes no bools; '~' and jnp.logical_not invert them");
    return op == "-" ? negate(*held) : *held;
  }
  if (!value.is_number()) refuse(fmt::format("'{}' is not possible with {}", op, describe(value)));
  if (op == "~") {
    if (!::meshd::numpy::is_integer(value)) refuse("'~' takes integers and bools, got " + describe(value));
    return ~as_integer(value);
  }
  if (const auto* both = value.as<std::complex<double>>()) return op == "-" ? Value(-*both) : value;
  if (const auto* real = value.as<double>()) return op == "-" ? Value(-*real) : value;
  return op == "-" ? static_binary("-", int64_t{0}, value) : Value(as_integer(value));
}

Value Tracer::binary(std::string_view op, const Value& a, const Value& b) {
  for (const Value* each : {&a, &b}) {
    if (const auto* undefined = each->as<Undefined>()) refuse(undefined->why);
  }
  if (a.is_number() && b.is_number()) {
    if (op == "@") refuse(bad_operands(op, a, b));
    return static_binary(op, a, b);
  }
  if (a.array() == nullptr && b.array() == nullptr) {
    if (auto made = container_binary(op, a, b)) return *made;
    refuse(bad_operands(op, a, b));
  }
  for (const Value* each : {&a, &b}) {
    if (each->array() == nullptr && !each->is_number())
      refuse(bad_operands(op, a, b) + (each->sequence() != nullptr ? "; jnp.array makes an array of a list" : ""));
  }
  return array_binary(op, a, b);
}

Value Tracer::array_binary(std::string_view op, const Value& a, const Value& b) {
  if (op == "+") return elementwise(*this, "stablehlo.add", a, b);
  if (op == "*") return elementwise(*this, "stablehlo.multiply", a, b);
  if (op == "-") {
    const std::vector<Array> both = broadcast_arrays({a, b});
    if (both[0].dtype() == DType::kBool) refuse("'-' takes no bools; '^' and jnp.logical_xor tell where they differ");
    return subtract(both[0], both[1]);
  }
  if (op == "/") return true_divide(*this, a, b);
  if (op == "//") return floor_divide(*this, a, b);
  if (op == "%") return remainder(*this, a, b);
  if (op == "**") return power(*this, a, b);
  if (op == "@") return matmul(*this, a, b);
  const std::vector<Array> both = broadcast_arrays({a, b});
  const DType dtype = both[0].dtype();
  if (!tensor::is_integer(dtype) && dtype != DType::kBool)
    refuse(fmt::format("'{}' takes integers and bools; got {} and {}", op, describe(a), describe(b)));
  if (op == "&") return logical_and(both[0], both[1]);
  if (op == "|") return logical_or(both[0], both[1]);
  if (op == "^") return this->op("stablehlo.xor", both);
  if (dtype == DType::kBool) refuse("'" + std::string(op) + "' takes integers");
  if (op == "<<") return this->op("stablehlo.shift_left", both);
  if (tensor::is_signed_integer(dtype)) return this->op("stablehlo.shift_right_arithmetic", both);
  return this->op("stablehlo.shift_right_logical", both);
}

Value Tracer::static_binary(std::string_view op, const Value& a, const Value& b) {
  if (a.is<bool>() && b.is<bool>()) {
    const bool x = *a.as<bool>();
    const bool y = *b.as<bool>();
    if (op == "&") return x && y;
    if (op == "|") return x || y;
    if (op == "^") return x != y;
  }
  const bool divides = op == "/" || op == "//" || op == "%";
  if (divides && !a.is<std::complex<double>>() && !b.is<std::complex<double>>() && as_double(b) == 0)
    refuse("division by zero");
  if (::meshd::numpy::is_integer(a) && ::meshd::numpy::is_integer(b) && op != "/") {
    const int64_t x = as_integer(a);
    const int64_t y = as_integer(b);
    if ((op == "<<" || op == ">>") && y < 0) refuse("a shift by a negative number");
    if (op == "**" && y < 0) {
      if (x == 0) refuse("division by zero");
      return std::pow(static_cast<double>(x), static_cast<double>(y));
    }
    const auto made = integer_binary(op, x, y);
    if (!made) refuse(fmt::format("'{}' of {} and {} does not fit in 63 bits", op, x, y));
    return *made;
  }
  if (op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>") refuse(bad_operands(op, a, b));
  if (a.is<std::complex<double>>() || b.is<std::complex<double>>()) {
    const std::complex<double> x = as_complex(a);
    const std::complex<double> y = as_complex(b);
    if (op == "+") return x + y;
    if (op == "-") return x - y;
    if (op == "*") return x * y;
    if (op == "/") return y == 0.0 ? (refuse("division by zero"), Value()) : Value(x / y);
    if (op == "**") return std::pow(x, y);
    refuse(bad_operands(op, a, b));
  }
  const double x = as_double(a);
  const double y = as_double(b);
  if (op == "+") return x + y;
  if (op == "-") return x - y;
  if (op == "*") return x * y;
  if (op == "/") return x / y;
  if (op == "**") {
    if (x < 0 && y != std::floor(y)) return std::pow(std::complex<double>(x), y);
    return std::pow(x, y);
  }
  double rest = std::fmod(x, y);
  if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
  if (op == "%") return rest;
  return std::floor((x - rest) / y + 0.5);
}

std::optional<Value> Tracer::container_binary(std::string_view op, const Value& a, const Value& b) {
  step(node_count(a) + node_count(b));
  const auto* text = a.as<std::string>();
  if (text != nullptr && b.is<std::string>() && op == "+") {
    if (text->size() + b.as<std::string>()->size() > kMaxStringBytes) refuse("the text is longer than is kept");
    return made_text(*text + *b.as<std::string>());
  }
  const Sequence* x = a.sequence();
  const Sequence* y = b.sequence();
  if (op == "+" && x != nullptr && y != nullptr && x->is_tuple == y->is_tuple) {
    std::vector<Value> items = x->items;
    items.insert(items.end(), y->items.begin(), y->items.end());
    if (items.size() > kMaxStaticElements) refuse("the list is longer than is kept");
    return x->is_tuple ? tuple_of(std::move(items)) : list_of(std::move(items), region_depth());
  }
  if (op == "*" && (x != nullptr || y != nullptr)) {
    const Sequence& list = x != nullptr ? *x : *y;
    const Value& times = x != nullptr ? b : a;
    if (!::meshd::numpy::is_integer(times)) return std::nullopt;
    const int64_t count = std::max<int64_t>(0, as_integer(times));
    if (list.items.empty() || count == 0) return list.is_tuple ? tuple_of({}) : list_of({}, region_depth());
    if (count > static_cast<int64_t>(kMaxStaticElements / list.items.size())) refuse("the list is longer than is kept");
    step(count * static_cast<int64_t>(list.items.size()));
    std::vector<Value> items;
    for (int64_t i = 0; i < count; ++i) items.insert(items.end(), list.items.begin(), list.items.end());
    return list.is_tuple ? tuple_of(std::move(items)) : list_of(std::move(items), region_depth());
  }
  return std::nullopt;
}

bool Tracer::is_equal(const Value& a, const Value& b) {
  step();
  if (a.is_number() && b.is_number()) return as_complex(a) == as_complex(b);
  const Sequence* x = a.sequence();
  const Sequence* y = b.sequence();
  if (x != nullptr && y != nullptr) {
    return x->is_tuple == y->is_tuple && std::equal(x->items.begin(), x->items.end(), y->items.begin(), y->items.end(),
                                                    [&](const Value& p, const Value& q) { return is_equal(p, q); });
  }
  // A dtype equals its name.
  if (a.is<DType>() && (b.is<std::string>() || b.is<CallableRef>())) return *a.as<DType>() == to_dtype(b);
  if (b.is<DType>() && (a.is<std::string>() || a.is<CallableRef>())) return is_equal(b, a);
  if (holds_array(a) || holds_array(b)) refuse("arrays inside of tuples are not compared; compare them one by one");
  return is_same_static(a, b);
}

Value Tracer::comparison(std::string_view op, const Value& a, const Value& b) {
  for (const Value* each : {&a, &b}) {
    if (const auto* undefined = each->as<Undefined>()) refuse(undefined->why);
  }
  if (op == "is" || op == "is not") {
    const bool same =
        is_same_static(a, b) || (a.array() != nullptr && b.array() != nullptr && a.array()->id == b.array()->id);
    return same == (op == "is");
  }
  if (op == "in" || op == "not in") {
    bool found = false;
    if (const auto* dict = b.as<DictRef>()) {
      found = find_item(*dict, dict_key(a)) != nullptr;
    } else if (const auto* text = b.as<std::string>()) {
      const std::string part = to_text(a, "what is sought in a text");
      step(static_cast<int64_t>(text->size() * (part.size() + 1) / 1024));
      found = text->find(part) != std::string::npos;
    } else {
      if (b.array() != nullptr) refuse("'in' of an array depends on data; use jnp.any(x == value) or jnp.isin");
      for (const Value& item : items_of(b, "in")) found = found || is_equal(a, item);
    }
    return found == (op == "in");
  }
  const bool has_array = a.array() != nullptr || b.array() != nullptr;
  if (has_array && (a.is_number() || a.array() != nullptr) && (b.is_number() || b.array() != nullptr)) {
    const std::vector<Array> both = broadcast_arrays({a, b});
    const std::string_view direction = op == "=="   ? "EQ"
                                       : op == "!=" ? "NE"
                                       : op == "<"  ? "LT"
                                       : op == "<=" ? "LE"
                                       : op == ">"  ? "GT"
                                                    : "GE";
    if (tensor::is_complex(both[0].dtype()) && direction != "EQ" && direction != "NE")
      refuse("complex numbers have no order; compare jnp.abs or .real of them");
    return compare(direction, both[0], both[1]);
  }
  if (op == "==" || op == "!=") return has_array ? op == "!=" : is_equal(a, b) == (op == "==");
  const bool numbers = a.is_number() && b.is_number() && !a.is<std::complex<double>>() && !b.is<std::complex<double>>();
  const auto* first = a.as<std::string>();
  const auto* second = b.as<std::string>();
  const auto ordered = [&](const auto& x, const auto& y) {
    return op == "<" ? x < y : op == "<=" ? x <= y : op == ">" ? x > y : x >= y;
  };
  if (first != nullptr && second != nullptr) return ordered(*first, *second);
  if (!numbers) refuse(bad_operands(op, a, b));
  if (::meshd::numpy::is_integer(a) && ::meshd::numpy::is_integer(b)) return ordered(as_integer(a), as_integer(b));
  return ordered(as_double(a), as_double(b));
}

bool Tracer::truth(const Value& value, std::string_view what) {
  if (const Array* held = value.array()) {
    refuse(
        fmt::format("'{}' needs to know the truth of {} while the program is traced; on arrays use &, | and ~, or "
                    "jnp.logical_and, jnp.logical_or, jnp.logical_not, jnp.where",
                    what, describe(Value(*held))));
  }
  if (const auto* undefined = value.as<Undefined>()) refuse(undefined->why);
  if (value.is_none()) return false;
  if (const auto* text = value.as<std::string>()) return !text->empty();
  if (value.is_number()) return as_complex(value) != 0.0;
  if (const Sequence* sequence = value.sequence()) return !sequence->items.empty();
  if (const auto* dict = value.as<DictRef>()) return !(*dict)->items.empty();
  return true;
}

std::vector<Value> Tracer::items_of(const Value& value, std::string_view what) {
  step(node_count(value));
  if (const Sequence* sequence = value.sequence()) return sequence->items;
  if (const auto* dict = value.as<DictRef>()) {
    std::vector<Value> keys;
    for (const auto& item : (*dict)->items) keys.emplace_back(item.first);
    return keys;
  }
  if (const auto* text = value.as<std::string>()) {
    step(static_cast<int64_t>(text->size()));
    std::vector<Value> out;
    for (const char c : *text) out.emplace_back(std::string(1, c));
    return out;
  }
  if (const auto* held = value.as<RangeRef>()) {
    const Range& range = **held;
    if (!range.is_static())
      refuse(std::string(what) + ": a range over an array is possible in 'for i in range(n)' only");
    std::vector<Value> out;
    const int64_t step = *range.step.as<int64_t>();
    const int64_t stop = *range.stop.as<int64_t>();
    for (int64_t i = *range.start.as<int64_t>(); step > 0 ? i < stop : i > stop;) {
      out.emplace_back(i);
      count_steps(1);
      if (out.size() > kMaxStaticElements)
        refuse(fmt::format("the range has more than {} numbers", kMaxStaticElements));
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    return out;
  }
  if (const Array* held = value.array()) {
    if (held->rank() == 0) refuse(std::string(what) + " cannot go over an array without dimensions");
    if (held->dims()[0] > 10'000)
      refuse(fmt::format("{} over {} rows would repeat the body as often; use range(len(x)) and x[i]", what,
                         held->dims()[0]));
    std::vector<Value> out;
    for (int64_t i = 0; i < held->dims()[0]; ++i) out.push_back(subscript(value, i));
    return out;
  }
  if (const auto* undefined = value.as<Undefined>()) refuse(undefined->why);
  refuse(std::string(what) + " cannot go over " + describe(value));
}

}  // namespace meshd::numpy
