// Elementwise functions: jnp.exp, jnp.maximum, jnp.floor_divide and so on; jax.scipy.special.
#include <cmath>
#include <limits>
#include <numbers>

#include "service/numpy/functions/shared.h"
#include "service/numpy/trace/arithmetic.h"

namespace meshd::numpy {
namespace {

using Unary = std::function<Array(Tracer&, const Array&)>;

// f(x) in x's float or complex type; integers become float32.
FunctionRow inexact_row(std::string path, Unary run) {
  return {std::move(path), "x",
          [run = std::move(run)](Tracer& t, const Arguments& a) -> Value { return run(t, t.inexact(a["x"])); }};
}
// f(x) in x's own type.
FunctionRow array_row(std::string path, Unary run) {
  return {std::move(path), "x",
          [run = std::move(run)](Tracer& t, const Arguments& a) -> Value { return run(t, t.array(a["x"])); }};
}
FunctionRow value_row(std::string path, std::function<Value(Tracer&, const Value&, const Value&)> run) {
  return {std::move(path), "x1, x2",
          [run = std::move(run)](Tracer& t, const Arguments& a) { return run(t, a["x1"], a["x2"]); }};
}
// f(x, y) on promoted and broadcast operands.
FunctionRow binary_row(std::string path, std::function<Array(Tracer&, const Array&, const Array&)> run) {
  return value_row(std::move(path), [run = std::move(run)](Tracer& t, const Value& x, const Value& y) -> Value {
    const std::vector<Array> both = t.broadcast_arrays({x, y});
    return run(t, both[0], both[1]);
  });
}
FunctionRow inexact_binary_row(std::string path, std::function<Array(Tracer&, const Array&, const Array&)> run) {
  return value_row(std::move(path), [run = std::move(run)](Tracer& t, const Value& x, const Value& y) -> Value {
    const std::vector<Array> both = t.inexact_arrays({x, y});
    return run(t, both[0], both[1]);
  });
}

Unary op(std::string name) {
  return [name = std::move(name)](Tracer& t, const Array& x) { return t.op(name, {x}); };
}
FunctionRow operator_row(std::string path, std::string symbol) {
  return value_row(std::move(path), [symbol](Tracer& t, const Value& x, const Value& y) -> Value {
    return t.binary(symbol, Value(t.array(x)), y);
  });
}
FunctionRow comparison_row(std::string path, std::string symbol) {
  return value_row(std::move(path), [symbol](Tracer& t, const Value& x, const Value& y) -> Value {
    return t.comparison(symbol, Value(t.array(x)), y);
  });
}

Array scaled(Tracer& t, const Array& x, double factor) { return t.multiply(x, t.with_number(x, factor)); }
bool is_float(const Array& x) { return tensor::is_float(x.dtype()); }
bool is_complex(const Array& x) { return tensor::is_complex(x.dtype()); }

Array where_equal(Tracer& t, const Array& x, double value, const Array& then, const Array& otherwise) {
  return t.select(t.compare("EQ", x, t.with_number(x, value)), then, otherwise);
}

// Rounds to whole numbers; integers stay.
FunctionRow rounding_row(std::string path, std::string op_name) {
  return array_row(std::move(path), [op_name](Tracer& t, const Array& x) {
    if (is_complex(x)) t.refuse("complex numbers are not rounded this way");
    return is_float(x) ? t.op(op_name, {x}) : x;
  });
}

Array round_to(Tracer& t, const Array& x, int64_t decimals) {
  if (is_complex(x)) return t.complex(round_to(t, t.real(x), decimals), round_to(t, t.imag(x), decimals));
  if (tensor::is_integer(x.dtype())) {
    if (decimals < 0) t.unsupported("round of integers to negative decimals");
    return x;
  }
  const Array even = x;
  if (decimals == 0) return t.op("stablehlo.round_nearest_even", {even});
  const Array factor = t.with_number(x, std::pow(10.0, static_cast<double>(decimals)));
  return t.divide(t.op("stablehlo.round_nearest_even", {t.multiply(x, factor)}), factor);
}

Array sign_of(Tracer& t, const Array& x) {
  if (x.dtype() == DType::kBool) t.refuse("sign takes no bools");
  if (tensor::is_integer(x.dtype()) && !tensor::is_signed_integer(x.dtype()))
    return t.select(t.compare("NE", x, t.full_like(x, int64_t{0})), t.full_like(x, int64_t{1}),
                    t.full_like(x, int64_t{0}));
  return t.op("stablehlo.sign", {x});
}

Array is_finite(Tracer& t, const Array& x) {
  if (is_complex(x)) return t.logical_and(is_finite(t, t.real(x)), is_finite(t, t.imag(x)));
  return is_float(x) ? t.op("stablehlo.is_finite", {x}) : t.full({DType::kBool, x.dims()}, true);
}

Array is_infinite(Tracer& t, const Array& x, double sign) {
  if (!is_float(x)) return t.full({DType::kBool, x.dims()}, false);
  return t.compare("EQ", x, t.with_number(x, sign * std::numeric_limits<double>::infinity()));
}

Array is_infinite_either_way(Tracer& t, const Array& x) {
  if (is_complex(x)) return t.logical_or(is_infinite_either_way(t, t.real(x)), is_infinite_either_way(t, t.imag(x)));
  return t.logical_or(is_infinite(t, x, 1), is_infinite(t, x, -1));
}

// log(exp(a) + exp(b)); equal infinities give themselves. By selects: the derivatives of a maximum and of a magnitude
// say nothing of the second one where a and b are equal, as softplus(0) has them. The first ones are exp(a - result),
// with 0 in place of infinity.
Array logaddexp(Tracer& t, const Array& a, const Array& b) {
  const Array is_first = t.compare("GE", a, b);
  const Array largest = t.select(is_first, a, b);
  const Array delta = t.subtract(a, b);
  const Array below = t.subtract(t.select(is_first, b, a), largest);
  const Array far = t.add(largest, t.op("stablehlo.log_plus_one", {t.op("stablehlo.exponential", {below})}));
  const Array out = t.select(t.compare("NE", delta, delta), t.add(a, b), far);
  const auto finite = [&](const Array& x) { return t.select(is_infinite(t, x, 1), t.full_like(x, int64_t{0}), x); };
  const auto slope = [&](const Array& x) {
    return t.op("stablehlo.exponential", {t.subtract(finite(x), finite(out))});
  };
  return t.differentiated_as(out, {a, slope(a), b, slope(b)});
}

Array sinc(Tracer& t, const Array& x) {
  const Array scaled_x = scaled(t, x, std::numbers::pi);
  const Array one = t.with_number(x, int64_t{1});
  const Array safe = where_equal(t, x, 0, one, scaled_x);
  const Array ratio = t.divide(t.op("stablehlo.sine", {safe}), safe);
  // At 0 it has the derivatives of its Taylor series, 1 - s/(2*3) (1 - s/(4*5) (1 - ...)) of s = (pi x)^2.
  const Array near = where_equal(t, x, 0, scaled_x, t.full_like(x, int64_t{0}));
  const Array square = t.multiply(near, near);
  Array series = one;
  for (double k = 8; k > 0; k -= 2) series = t.subtract(one, t.multiply(scaled(t, square, 1 / (k * (k + 1))), series));
  return t.differentiated_as(where_equal(t, x, 0, one, ratio), {where_equal(t, x, 0, series, ratio)});
}

// x * y, where y is a logarithm of `of` with this slope: 0 where x is, but for NaN. Its derivatives are those of the
// product at 0, too.
Array times_log(Tracer& t, const Array& x, const Array& y, const Array& of, const Array& slope) {
  const Array is_product = t.logical_or(t.compare("NE", x, t.full_like(x, int64_t{0})), t.compare("NE", of, of));
  const Array out = t.select(is_product, t.multiply(x, y), t.full_like(x, int64_t{0}));
  return t.differentiated_as(out, {x, y, of, slope});
}

Array xlogy(Tracer& t, const Array& x, const Array& y) {
  return times_log(t, x, t.op("stablehlo.log", {y}), y, t.divide(x, y));
}

Array xlog1py(Tracer& t, const Array& x, const Array& y) {
  const Array slope = t.divide(x, t.add(t.with_number(y, int64_t{1}), y));
  return times_log(t, x, t.op("stablehlo.log_plus_one", {y}), y, slope);
}

// x log(x), whose slope is log(x) + 1, at 0, too.
Array xlogx(Tracer& t, const Array& x) {
  const Array slope = t.add(t.op("stablehlo.log", {x}), t.with_number(x, int64_t{1}));
  return t.differentiated_as(xlogy(t, x, x), {x, slope});
}

Array logit(Tracer& t, const Array& x) {
  const Array rest = t.subtract(t.with_number(x, int64_t{1}), x);
  const Array slope = t.divide(t.with_number(x, int64_t{1}), t.multiply(x, rest));
  return t.differentiated_as(t.op("stablehlo.log", {t.divide(x, rest)}), {x, slope});
}

Array square_sum_root(Tracer& t, const Array& a, const Array& b) {
  const Array x = abs_of(t, a);
  const Array y = abs_of(t, b);
  const Array high = t.maximum(x, y);
  const Array low = t.minimum(x, y);
  const Array zero = t.full_like(high, int64_t{0});
  const Array is_zero = t.compare("EQ", high, zero);
  const Array ratio = t.divide(low, t.select(is_zero, t.full_like(high, int64_t{1}), high));
  const Array made =
      t.multiply(high, t.op("stablehlo.sqrt", {t.add(t.full_like(high, int64_t{1}), t.multiply(ratio, ratio))}));
  const Array infinite = t.logical_or(is_infinite(t, x, 1), is_infinite(t, y, 1));
  return t.select(infinite, t.full_like(high, std::numeric_limits<double>::infinity()), t.select(is_zero, high, made));
}

// Through integers, which have no derivative.
Array without_gradient(Tracer& t, const Array& x) {
  if (is_complex(x)) return t.complex(without_gradient(t, t.real(x)), without_gradient(t, t.imag(x)));
  if (!is_float(x) || tensor::row(x.dtype()).bits < 16) return x;
  const int bits = tensor::row(x.dtype()).bits;
  const DType whole = bits == 16 ? DType::kUint16 : bits == 32 ? DType::kUint32 : DType::kUint64;
  return t.bitcast(t.bitcast(x, whole), x.dtype());
}

Value clipped(Tracer& t, const Arguments& a) {
  Value out = t.array(a["arr"]);
  if (!a["min"].is_none()) out = elementwise(t, "stablehlo.maximum", a["min"], out);
  if (!a["max"].is_none()) out = elementwise(t, "stablehlo.minimum", a["max"], out);
  return out;
}

Value near(Tracer& t, const Arguments& a) {
  const std::vector<Array> both = t.inexact_arrays({a["a"], a["b"]});
  const Array& x = both[0];
  const Array& y = both[1];
  const Array size = abs_of(t, y);
  const Array bound = t.add(t.typed(a["atol"], size.type), t.multiply(t.typed(a["rtol"], size.type), size));
  const Array finite = t.logical_and(is_finite(t, x), is_finite(t, y));
  Array out =
      t.logical_or(t.compare("EQ", x, y), t.logical_and(finite, t.compare("LE", abs_of(t, t.subtract(x, y)), bound)));
  if (t.to_bool(a["equal_nan"], "equal_nan"))
    out = t.logical_or(out, t.logical_and(t.compare("NE", x, x), t.compare("NE", y, y)));
  return out;
}

Array bool_of(Tracer& t, const Value& x) { return t.convert(t.array(x), DType::kBool); }

FunctionRow logical_row(std::string path, std::string name) {
  return value_row(std::move(path), [name](Tracer& t, const Value& x, const Value& y) -> Value {
    const Array a = bool_of(t, x);
    const Array b = bool_of(t, y);
    return t.op(name, t.broadcast_arrays({a, b}));
  });
}

// A function and the op, or Python's operator, that it is.
struct NamedOp {
  const char* path;
  const char* writes;
};

// f(x) in x's float or complex type; integers become float32.
constexpr NamedOp kInexactOps[] = {
    {.path = "jnp.exp", .writes = "stablehlo.exponential"},
    {.path = "jnp.expm1", .writes = "stablehlo.exponential_minus_one"},
    {.path = "jnp.log", .writes = "stablehlo.log"},
    {.path = "jnp.log1p", .writes = "stablehlo.log_plus_one"},
    {.path = "jnp.sqrt", .writes = "stablehlo.sqrt"},
    {.path = "jnp.cbrt", .writes = "stablehlo.cbrt"},
    {.path = "lax.rsqrt", .writes = "stablehlo.rsqrt"},
    {.path = "special.erf", .writes = "chlo.erf"},
    {.path = "special.erfc", .writes = "chlo.erfc"},
    {.path = "special.erfinv", .writes = "chlo.erf_inv"},
    {.path = "special.gammaln", .writes = "chlo.lgamma"},
    {.path = "special.digamma", .writes = "chlo.digamma"},
    {.path = "special.expit", .writes = "stablehlo.logistic"},
    {.path = "jnp.sin", .writes = "stablehlo.sine"},
    {.path = "jnp.cos", .writes = "stablehlo.cosine"},
    {.path = "jnp.tan", .writes = "stablehlo.tan"},
    {.path = "jnp.arcsin", .writes = "chlo.asin"},
    {.path = "jnp.arccos", .writes = "chlo.acos"},
    {.path = "jnp.arctan", .writes = "chlo.atan"},
    {.path = "jnp.sinh", .writes = "chlo.sinh"},
    {.path = "jnp.cosh", .writes = "chlo.cosh"},
    {.path = "jnp.tanh", .writes = "stablehlo.tanh"},
    {.path = "jnp.arcsinh", .writes = "chlo.asinh"},
    {.path = "jnp.arccosh", .writes = "chlo.acosh"},
    {.path = "jnp.arctanh", .writes = "chlo.atanh"},
    {.path = "special.i1e", .writes = "chlo.bessel_i1e"},
};
// f(x) in x's own type.
constexpr NamedOp kArrayOps[] = {
    {.path = "lax.population_count", .writes = "stablehlo.popcnt"},
    {.path = "lax.clz", .writes = "stablehlo.count_leading_zeros"},
};
// f(x, y) on promoted and broadcast floats.
constexpr NamedOp kInexactBinaryOps[] = {
    {.path = "jnp.arctan2", .writes = "stablehlo.atan2"},
    {.path = "jnp.float_power", .writes = "stablehlo.power"},
    {.path = "jnp.nextafter", .writes = "chlo.next_after"},
    {.path = "special.polygamma", .writes = "chlo.polygamma"},
};
// f(x, y) on promoted and broadcast operands.
constexpr NamedOp kBinaryOps[] = {
    {.path = "lax.div", .writes = "stablehlo.divide"},
    {.path = "lax.rem", .writes = "stablehlo.remainder"},
    {.path = "lax.shift_right_logical", .writes = "stablehlo.shift_right_logical"},
};
// Python's operators.
constexpr NamedOp kOperatorFunctions[] = {
    {"jnp.add", "+"},           {"jnp.subtract", "-"},    {"jnp.multiply", "*"},    {"jnp.divide", "/"},
    {"jnp.floor_divide", "//"}, {"jnp.mod", "%"},         {"jnp.power", "**"},      {"jnp.bitwise_and", "&"},
    {"jnp.bitwise_or", "|"},    {"jnp.bitwise_xor", "^"}, {"jnp.left_shift", "<<"}, {"jnp.right_shift", ">>"},
};
// Python's comparisons.
constexpr NamedOp kComparisonFunctions[] = {
    {"jnp.equal", "=="},      {"jnp.not_equal", "!="}, {"jnp.less", "<"},
    {"jnp.less_equal", "<="}, {"jnp.greater", ">"},    {"jnp.greater_equal", ">="},
};
// f(x, y) on truth values.
constexpr NamedOp kLogicalOps[] = {
    {.path = "jnp.logical_and", .writes = "stablehlo.and"},
    {.path = "jnp.logical_or", .writes = "stablehlo.or"},
    {.path = "jnp.logical_xor", .writes = "stablehlo.xor"},
};

std::vector<FunctionRow> named_ops() {
  std::vector<FunctionRow> out;
  const auto binary = [](const char* name) {
    return [name](Tracer& t, const Array& x, const Array& y) { return t.op(name, {x, y}); };
  };
  for (const auto& [path, name] : kInexactOps) out.push_back(inexact_row(path, op(name)));
  for (const auto& [path, name] : kArrayOps) out.push_back(array_row(path, op(name)));
  for (const auto& [path, name] : kInexactBinaryOps) out.push_back(inexact_binary_row(path, binary(name)));
  for (const auto& [path, name] : kBinaryOps) out.push_back(binary_row(path, binary(name)));
  for (const auto& [path, symbol] : kOperatorFunctions) out.push_back(operator_row(path, symbol));
  for (const auto& [path, symbol] : kComparisonFunctions) out.push_back(comparison_row(path, symbol));
  for (const auto& [path, name] : kLogicalOps) out.push_back(logical_row(path, name));
  return out;
}

std::vector<FunctionRow> exponentials() {
  return {
      inexact_row(
          "jnp.exp2",
          [](Tracer& t, const Array& x) { return t.op("stablehlo.exponential", {scaled(t, x, std::numbers::ln2)}); }),
      inexact_row("jnp.log2",
                  [](Tracer& t, const Array& x) {
                    return t.divide(t.op("stablehlo.log", {x}), t.with_number(x, std::numbers::ln2));
                  }),
      inexact_row(
          "jnp.log10",
          [](Tracer& t, const Array& x) { return scaled(t, t.op("stablehlo.log", {x}), std::numbers::log10e); }),
      array_row("jnp.square", [](Tracer& t, const Array& x) { return t.multiply(x, x); }),
      inexact_row("jnp.reciprocal",
                  [](Tracer& t, const Array& x) { return t.divide(t.with_number(x, int64_t{1}), x); }),
      inexact_binary_row("jnp.logaddexp", logaddexp),
      inexact_binary_row("jnp.hypot", square_sum_root),
      inexact_row("special.logit", logit),
      inexact_row("special._xlogx", xlogx),
      {"special.xlogy", "x, y",
       [](Tracer& t, const Arguments& a) -> Value {
         const std::vector<Array> both = t.inexact_arrays({a["x"], a["y"]});
         return xlogy(t, both[0], both[1]);
       }},
      {"special.xlog1py", "x, y",
       [](Tracer& t, const Arguments& a) -> Value {
         const std::vector<Array> both = t.inexact_arrays({a["x"], a["y"]});
         return xlog1py(t, both[0], both[1]);
       }},
  };
}

std::vector<FunctionRow> trigonometry() {
  return {
      inexact_row("jnp.sinc", sinc),
      inexact_row("jnp.deg2rad", [](Tracer& t, const Array& x) { return scaled(t, x, std::numbers::pi / 180); }),
      inexact_row("jnp.rad2deg", [](Tracer& t, const Array& x) { return scaled(t, x, 180 / std::numbers::pi); }),
  };
}

std::vector<FunctionRow> arithmetic() {
  return {
      value_row("jnp.divmod",
                [](Tracer& t, const Value& x, const Value& y) {
                  return tuple_of({floor_divide(t, x, y), remainder(t, x, y)});
                }),
      binary_row("jnp.fmod",
                 [](Tracer& t, const Array& x, const Array& y) {
                   // Of a division by an integer 0 nothing remains.
                   const Array divisor =
                       tensor::is_integer(y.dtype()) ? where_equal(t, y, 0, t.with_number(y, int64_t{1}), y) : y;
                   return t.op("stablehlo.remainder", {x, divisor});
                 }),
      array_row("jnp.negative", [](Tracer& t, const Array& x) { return *t.unary("-", Value(x)).array(); }),
      array_row("jnp.positive", [](Tracer& t, const Array& x) { return *t.unary("+", Value(x)).array(); }),
      array_row("jnp.abs", abs_of),
      inexact_row("jnp.fabs", abs_of),
      array_row("jnp.sign", sign_of),
      binary_row("jnp.maximum", [](Tracer& t, const Array& x, const Array& y) { return t.maximum(x, y); }),
      binary_row("jnp.minimum", [](Tracer& t, const Array& x, const Array& y) { return t.minimum(x, y); }),
      binary_row("jnp.fmax",
                 [](Tracer& t, const Array& x, const Array& y) {
                   return t.select(t.logical_or(t.compare("GT", x, y), t.compare("NE", y, y)), x, y);
                 }),
      binary_row("jnp.fmin",
                 [](Tracer& t, const Array& x, const Array& y) {
                   return t.select(t.logical_or(t.compare("LT", x, y), t.compare("NE", y, y)), x, y);
                 }),
      inexact_binary_row("jnp.heaviside",
                         [](Tracer& t, const Array& x, const Array& y) {
                           const Array zero = t.full_like(x, int64_t{0});
                           const Array one_like = t.full_like(x, int64_t{1});
                           const Array step = t.select(t.compare("LT", x, zero), zero,
                                                       t.select(t.compare("GT", x, zero), one_like, y));
                           return t.select(t.compare("NE", x, x), x, step);
                         }),
      array_row("jnp.bitwise_count",
                [](Tracer& t, const Array& x) {
                  const bool is_signed = tensor::is_signed_integer(x.dtype());
                  return t.convert(t.op("stablehlo.popcnt", {is_signed ? t.op("stablehlo.abs", {x}) : x}),
                                   DType::kUint8);
                }),
      {"jnp.clip", "arr, min=None, max=None", clipped},
      {"lax.clamp", "min, x, max",
       [](Tracer& t, const Arguments& a) -> Value {
         return t.op("stablehlo.clamp", t.broadcast_arrays({a["min"], a["x"], a["max"]}));
       }},
      {"jnp.round", "a, decimals=0",
       [](Tracer& t, const Arguments& a) -> Value {
         return round_to(t, t.array(a["a"]), t.to_int(a["decimals"], "decimals"));
       }},
      array_row("jnp.rint", [](Tracer& t, const Array& x) { return round_to(t, t.inexact(Value(x)), 0); }),
      rounding_row("jnp.floor", "stablehlo.floor"),
      rounding_row("jnp.ceil", "stablehlo.ceil"),
      array_row("jnp.trunc",
                [](Tracer& t, const Array& x) {
                  if (!is_float(x)) return x;
                  return t.select(t.compare("LT", x, t.full_like(x, int64_t{0})), t.op("stablehlo.ceil", {x}),
                                  t.op("stablehlo.floor", {x}));
                }),
      array_row("lax.stop_gradient", without_gradient),
      // For functions of the library: (value, like) or (value, x, slope, ...), all of the value's shape.
      {"jax._differentiated_as", "value, *like",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array value = t.array(a["value"]);
         std::vector<Array> like;
         for (const Value& each : a.all("like")) like.push_back(t.convert(t.array(each), value.dtype()));
         return t.differentiated_as(value, like);
       }},
  };
}

std::vector<FunctionRow> complex_parts() {
  return {
      array_row("jnp.real", [](Tracer& t, const Array& x) { return is_complex(x) ? t.real(x) : x; }),
      array_row("jnp.imag",
                [](Tracer& t, const Array& x) { return is_complex(x) ? t.imag(x) : t.full_like(x, int64_t{0}); }),
      array_row(
          "jnp.conj",
          [](Tracer& t, const Array& x) { return is_complex(x) ? t.complex(t.real(x), t.negate(t.imag(x))) : x; }),
      {"jnp.angle", "z, deg=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.inexact(a["z"]);
         const Array re = is_complex(x) ? t.real(x) : x;
         const Array im = is_complex(x) ? t.imag(x) : t.full_like(x, int64_t{0});
         const Array out = t.op("stablehlo.atan2", {im, re});
         return t.to_bool(a["deg"], "deg") ? scaled(t, out, 180 / std::numbers::pi) : out;
       }},
      {"lax.complex", "x, y",
       [](Tracer& t, const Arguments& a) -> Value {
         const std::vector<Array> both = t.inexact_arrays({a["x"], a["y"]});
         return t.complex(both[0], both[1]);
       }},
  };
}

std::vector<FunctionRow> comparisons() {
  return {
      {"jnp.logical_not", "x",
       [](Tracer& t, const Arguments& a) -> Value { return t.logical_not(bool_of(t, a["x"])); }},
      array_row("jnp.bitwise_not", [](Tracer& t, const Array& x) { return *t.unary("~", Value(x)).array(); }),
      array_row("jnp.isnan", [](Tracer& t, const Array& x) { return t.compare("NE", x, x); }),
      array_row("jnp.isfinite", is_finite),
      array_row("jnp.isinf", is_infinite_either_way),
      array_row("jnp.isposinf", [](Tracer& t, const Array& x) { return is_infinite(t, x, 1); }),
      array_row("jnp.isneginf", [](Tracer& t, const Array& x) { return is_infinite(t, x, -1); }),
      array_row("jnp.signbit",
                [](Tracer& t, const Array& x) {
                  if (!is_float(x)) return t.compare("LT", x, t.full_like(x, int64_t{0}));
                  const Array sign = t.op("stablehlo.sign", {x});
                  const Array inverse = t.divide(t.full_like(x, int64_t{1}), x);
                  return t.logical_or(t.compare("LT", sign, t.full_like(x, int64_t{0})),
                                      t.compare("LT", inverse, t.full_like(x, int64_t{0})));
                }),
      {"jnp.isclose", "a, b, rtol=1e-05, atol=1e-08, equal_nan=False", near},
      {"jnp.allclose", "a, b, rtol=1e-05, atol=1e-08, equal_nan=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array close = *near(t, a).array();
         return t.reduce("stablehlo.and", close, t.to_axes(None{}, close.rank()), true);
       }},
  };
}

}  // namespace

std::vector<FunctionRow> math_functions() {
  std::vector<FunctionRow> out;
  for (auto part : {named_ops, exponentials, trigonometry, arithmetic, complex_parts, comparisons}) {
    std::vector<FunctionRow> rows = part();
    std::move(rows.begin(), rows.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace meshd::numpy
