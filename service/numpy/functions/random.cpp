// Random numbers as jax.random makes them by default: threefry2x32 with jax_threefry_partitionable, so that bits are
// equal to JAX's. A key is two uint32; random.key and random.PRNGKey give the same.
#include <algorithm>
#include <cmath>
#include <limits>

#include "service/numpy/functions/shared.h"
#include "service/numpy/trace/indexing.h"

namespace meshd::numpy {
namespace {

Array scalar(Tracer& t, DType dtype, int64_t value) { return t.full({dtype, {}}, value); }

struct Key {
  Array first, second;
};

Key random_key(Tracer& t, const Value& value) {
  const Array key = t.array(value);
  if (key.dtype() != DType::kUint32 || key.dims() != tensor::Dims{2}) {
    t.refuse("expected a random key (two uint32, from random.key or random.split), got " + describe(value));
  }
  return {t.reshape(t.slice_dim(key, 0, 0, 1), {}), t.reshape(t.slice_dim(key, 0, 1, 2), {})};
}

Array stacked_pair(Tracer& t, const Array& a, const Array& b) {
  const int64_t last = a.rank();
  return t.concatenate({t.expand_dims(a, {last}), t.expand_dims(b, {last})}, last);
}

// Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011): threefry2x32 with 20 rounds.
std::pair<Array, Array> threefry(Tracer& t, const Key& key, Array x, Array y) {
  constexpr int64_t kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const auto spread = [&](const Array& a) { return t.broadcast_to(a, x.dims()); };
  const Array parity = scalar(t, DType::kUint32, 0x1BD11BDA);
  const Array third = t.op("stablehlo.xor", {t.op("stablehlo.xor", {key.first, key.second}), parity});
  const Array keys[3] = {spread(key.first), spread(key.second), spread(third)};
  x = t.add(x, keys[0]);
  y = t.add(y, keys[1]);
  for (int group = 0; group < 5; ++group) {
    for (const int64_t rotation : kRotations[group % 2]) {
      x = t.add(x, y);
      const Array left = t.op("stablehlo.shift_left", {y, t.full_like(y, rotation)});
      const Array right = t.op("stablehlo.shift_right_logical", {y, t.full_like(y, 32 - rotation)});
      y = t.op("stablehlo.xor", {x, t.logical_or(left, right)});
    }
    x = t.add(x, keys[(group + 1) % 3]);
    y = t.add(t.add(y, keys[(group + 2) % 3]), t.full_like(y, int64_t{group + 1}));
  }
  return {x, y};
}

// The numbers 0, 1, ... in a shape, as upper and lower words.
std::pair<Array, Array> counts(Tracer& t, const tensor::Dims& dims) {
  const int64_t size = tensor::element_count(dims);
  if (size > int64_t{UINT32_MAX}) t.unsupported("more than 2^32 random numbers at once");
  return {t.full({DType::kUint32, dims}, int64_t{0}), t.reshape(t.iota({DType::kUint32, {size}}, 0), dims)};
}

DType unsigned_of(int bits) {
  return bits == 8 ? DType::kUint8 : bits == 16 ? DType::kUint16 : bits == 32 ? DType::kUint32 : DType::kUint64;
}

Array random_bits(Tracer& t, const Key& key, int bits, const tensor::Dims& dims) {
  const auto [high, low] = counts(t, dims);
  const auto [x, y] = threefry(t, key, high, low);
  if (bits == 64) {
    const Array upper = t.convert(x, DType::kUint64);
    return t.logical_or(t.op("stablehlo.shift_left", {upper, t.full_like(upper, int64_t{32})}),
                        t.convert(y, DType::kUint64));
  }
  return t.convert(t.op("stablehlo.xor", {x, y}), unsigned_of(bits));
}

DType float_type(Tracer& t, const Value& dtype) {
  const DType out = t.to_dtype_or_none(dtype).value_or(DType::kFloat32);
  if (!tensor::is_float(out) || tensor::row(out).bits < 16)
    t.refuse("random floats have a float type of 16 bits or more, got " + std::string(tensor::name(out)));
  return out;
}

Array uniform(Tracer& t, const Key& key, const tensor::Dims& dims, DType dtype, const Value& low, const Value& high) {
  const tensor::TensorType type{dtype, dims};
  const Array from = t.typed(low, {dtype, t.dims_of(low)});
  const Array to = t.typed(high, {dtype, t.dims_of(high)});
  const int bits = tensor::row(dtype).bits;
  const int mantissa = tensor::row(dtype).format.mantissa_bits;
  const int made = mantissa < 8 ? 8 : bits;
  const Array random = t.convert(random_bits(t, key, made, dims), unsigned_of(bits));
  const Array shifted = t.op("stablehlo.shift_right_logical", {random, t.full_like(random, int64_t{made - mantissa})});
  // The bits of 1.0: floats in [1, 2).
  const Array one_bits = t.bitcast(t.full(type, int64_t{1}), unsigned_of(bits));
  const Array floats = t.subtract(t.bitcast(t.logical_or(shifted, one_bits), dtype), t.full(type, int64_t{1}));
  const std::vector<Array> bounds = t.broadcast_arrays({from, to});
  const Array span = t.broadcast_to(t.subtract(bounds[1], bounds[0]), dims);
  const Array floor = t.broadcast_to(from, dims);
  return t.maximum(floor, t.add(t.multiply(floats, span), floor));
}

// The float next to -1 on the way to 0.
double above_minus_one(DType dtype) { return -1 + std::ldexp(1.0, -tensor::row(dtype).format.mantissa_bits - 1); }

Array normal(Tracer& t, const Key& key, const tensor::Dims& dims, DType dtype) {
  const Array u = uniform(t, key, dims, dtype, above_minus_one(dtype), 1.0);
  return t.multiply(t.full(u.type, std::sqrt(2.0)), t.op("chlo.erf_inv", {u}));
}

tensor::Dims shape_argument(Tracer& t, const Value& shape) { return t.to_ints(shape, "a shape"); }

std::pair<Key, Key> split_key(Tracer& t, const Key& key) {
  const auto [high, low] = counts(t, {2});
  const auto [x, y] = threefry(t, key, high, low);
  const auto part = [&](const Array& from, int64_t i) { return t.reshape(t.slice_dim(from, 0, i, i + 1), {}); };
  return {Key{part(x, 0), part(y, 0)}, Key{part(x, 1), part(y, 1)}};
}

Value split(Tracer& t, const Arguments& a) {
  const auto [high, low] = counts(t, shape_argument(t, a["num"]));
  const auto [x, y] = threefry(t, random_key(t, a["key"]), high, low);
  return stacked_pair(t, x, y);
}

Value seeded(Tracer& t, const Value& seed) {
  const Array zero = scalar(t, DType::kUint32, 0);
  if (seed.array() == nullptr)
    return stacked_pair(t, zero, scalar(t, DType::kUint32, t.to_int(seed, "a seed") & int64_t{UINT32_MAX}));
  const Array& given = *seed.array();
  if (given.rank() != 0 || !tensor::is_integer(given.dtype())) t.refuse("a seed is an integer, got " + describe(seed));
  if (tensor::row(given.dtype()).bits < 64) return stacked_pair(t, zero, t.convert(given, DType::kUint32));
  const Array upper = t.op("stablehlo.shift_right_logical", {given, t.full_like(given, int64_t{32})});
  return stacked_pair(t, t.convert(upper, DType::kUint32), t.convert(given, DType::kUint32));
}

Value fold_in(Tracer& t, const Arguments& a) {
  const Array data = t.convert(t.array(a["data"]), DType::kUint32);
  if (data.rank() != 0) t.refuse("fold_in takes one integer, got " + describe(a["data"]));
  const auto [x, y] = threefry(t, random_key(t, a["key"]), scalar(t, DType::kUint32, 0), data);
  return stacked_pair(t, x, y);
}

Array randint(Tracer& t, const Key& key, const tensor::Dims& dims, const Value& low, const Value& high, DType dtype) {
  if (!tensor::is_integer(dtype) || tensor::row(dtype).bits < 8) t.refuse("randint makes integers of 8 bits or more");
  const int bits = tensor::row(dtype).bits;
  // The largest value may be the bound: randint(key, shape, 0, 256, uint8).
  const int64_t most = dtype == DType::kUint64 ? INT64_MAX : *t.highest(dtype).as<int64_t>();
  const auto* stop = high.as<int64_t>();
  const bool is_past = stop != nullptr && most != INT64_MAX && *stop > most;
  const Array from = t.broadcast_to(t.typed(low, {dtype, t.dims_of(low)}), dims);
  const Array to = t.broadcast_to(is_past ? t.full({dtype, {}}, most) : t.typed(high, {dtype, t.dims_of(high)}), dims);
  const auto [first, second] = split_key(t, key);
  const Array upper = random_bits(t, first, bits, dims);
  const Array lower = random_bits(t, second, bits, dims);
  Array span = t.convert(t.subtract(to, from), unsigned_of(bits));
  const Array is_empty = t.compare("LE", to, from);
  span = t.select(is_empty, t.full_like(span, int64_t{1}), span);
  if (is_past) span = t.select(is_empty, span, t.add(span, t.full_like(span, int64_t{1})));
  const auto rest = [&](const Array& x, const Array& y) { return t.op("stablehlo.remainder", {x, y}); };
  Array factor = rest(t.full_like(span, int64_t{1} << (bits / 2)), span);
  factor = rest(t.multiply(factor, factor), span);
  const Array offset = rest(t.add(t.multiply(rest(upper, span), factor), rest(lower, span)), span);
  return t.add(from, t.convert(offset, dtype));
}

// Integers of less than 32 bits are drawn as int32, between what their type has.
Array narrow_randint(Tracer& t, const Key& key, const tensor::Dims& dims, const Value& low, const Value& high,
                     DType dtype) {
  const int64_t most = *t.highest(dtype).as<int64_t>();
  const auto within = [&](const Value& bound, int64_t end) {
    const Array x = t.convert(t.array(bound), DType::kInt32);
    return t.maximum(t.minimum(x, t.full_like(x, end)), t.full_like(x, *t.lowest(dtype).as<int64_t>()));
  };
  return t.convert(randint(t, key, dims, within(low, most), within(high, most + 1), DType::kInt32), dtype);
}

Array shuffled(Tracer& t, Key key, Array x, int64_t axis) {
  const int64_t size = tensor::element_count(x.type);
  const auto rounds = static_cast<int>(
      std::ceil(3 * std::log(static_cast<double>(std::max<int64_t>(1, size))) / std::log(4294967295.0)));
  for (int i = 0; i < rounds; ++i) {
    const auto [next, used] = split_key(t, key);
    key = next;
    x = t.sort({random_bits(t, used, 32, x.dims()), x}, axis, 1)[1];
  }
  return x;
}

Value permutation(Tracer& t, const Arguments& a) {
  const Key key = random_key(t, a["key"]);
  if (a["x"].is<int64_t>()) return shuffled(t, key, t.iota({DType::kInt32, {t.to_int(a["x"], "x")}}, 0), 0);
  const Array x = t.array(a["x"]);
  if (x.rank() == 0) t.refuse("permutation takes a static int or an array of at least one dimension");
  const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  if (t.to_bool(a["independent"], "independent") || x.rank() == 1) return shuffled(t, key, x, axis);
  const Array order = shuffled(t, key, t.iota({DType::kInt32, {x.dims()[static_cast<size_t>(axis)]}}, 0), 0);
  return take_rows(t, x, order, axis);
}

Array gumbel(Tracer& t, const Key& key, const tensor::Dims& dims, DType dtype) {
  const double tiny = std::ldexp(1.0, 1 - tensor::row(dtype).format.bias);
  const Array u = uniform(t, key, dims, dtype, tiny, 1.0);
  const auto minus_log = [&](const Array& x) { return t.negate(t.op("stablehlo.log", {x})); };
  return minus_log(minus_log(u));
}

Value categorical(Tracer& t, const Arguments& a) {
  const Array logits = t.inexact(a["logits"]);
  const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), logits.rank());
  tensor::Dims batch = logits.dims();
  batch.erase(batch.begin() + axis);
  const tensor::Dims dims = a["shape"].is_none() ? batch : shape_argument(t, a["shape"]);
  if (dims.size() < batch.size() ||
      !std::equal(batch.begin(), batch.end(), dims.end() - static_cast<int64_t>(batch.size())))
    t.refuse("the shape of categorical ends with that of the logits without the axis, " + shape_text(batch));
  const auto more = static_cast<int64_t>(dims.size() - batch.size());
  tensor::Dims wide(dims.begin(), dims.begin() + more);
  wide.insert(wide.end(), logits.dims().begin(), logits.dims().end());
  const Array noise = gumbel(t, random_key(t, a["key"]), wide, logits.dtype());
  return arg_reduce(t, t.add(noise, t.broadcast_to(logits, wide)), axis + more, "GT");
}

Value choice(Tracer& t, const Arguments& a) {
  if (!a["p"].is_none() || !t.to_bool(a["replace"], "replace"))
    t.unsupported("random.choice with p, or without replacement; random.permutation and random.categorical are there");
  const tensor::Dims dims = shape_argument(t, a["shape"]);
  const Key key = random_key(t, a["key"]);
  if (a["a"].is<int64_t>()) return randint(t, key, dims, int64_t{0}, a["a"], DType::kInt32);
  const Array x = t.array(a["a"]);
  if (x.rank() == 0) t.refuse("choice takes a static int or an array");
  return take_rows(t, x, randint(t, key, dims, int64_t{0}, x.dims()[0], DType::kInt32), 0);
}

Value truncated_normal(Tracer& t, const Arguments& a) {
  const DType dtype = float_type(t, a["dtype"]);
  const Array root = t.full({dtype, {}}, std::sqrt(2.0));
  const std::vector<Array> bounds = t.broadcast_arrays(
      {t.typed(a["lower"], {dtype, t.dims_of(a["lower"])}), t.typed(a["upper"], {dtype, t.dims_of(a["upper"])})});
  const auto edge = [&](const Array& x) { return t.op("chlo.erf", {t.divide(x, t.broadcast_to(root, x.dims()))}); };
  const tensor::Dims dims = a["shape"].is_none() ? bounds[0].dims() : shape_argument(t, a["shape"]);
  const Array u = uniform(t, random_key(t, a["key"]), dims, dtype, edge(bounds[0]), edge(bounds[1]));
  const Array made = t.multiply(t.broadcast_to(root, dims), t.op("chlo.erf_inv", {u}));
  const auto next = [&](const Array& x, double toward) {
    return t.broadcast_to(t.op("chlo.next_after", {x, t.full_like(x, toward)}), dims);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return t.minimum(t.maximum(made, next(bounds[0], kInfinity)), next(bounds[1], -kInfinity));
}

FunctionRow shaped_row(std::string path, std::function<Array(Tracer&, const Key&, const tensor::Dims&, DType)> run) {
  return {std::move(path), "key, shape=(), dtype=None", [run = std::move(run)](Tracer& t, const Arguments& a) -> Value {
            return run(t, random_key(t, a["key"]), shape_argument(t, a["shape"]), float_type(t, a["dtype"]));
          }};
}

}  // namespace

std::vector<FunctionRow> random_functions() {
  return {
      {"random.key", "seed", [](Tracer& t, const Arguments& a) { return seeded(t, a["seed"]); }},
      {"random.PRNGKey", "seed", [](Tracer& t, const Arguments& a) { return seeded(t, a["seed"]); }},
      {"random.key_data", "keys", [](Tracer&, const Arguments& a) { return a["keys"]; }},
      {"random.wrap_key_data", "data", [](Tracer&, const Arguments& a) { return a["data"]; }},
      {"random.split", "key, num=2", split},
      {"random.fold_in", "key, data", fold_in},
      {"random.bits", "key, shape=(), dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const DType dtype = t.to_dtype_or_none(a["dtype"]).value_or(DType::kUint32);
         if (!tensor::is_integer(dtype) || tensor::is_signed_integer(dtype) || tensor::row(dtype).bits < 8)
           t.refuse("random.bits makes uint8, uint16, uint32 or uint64");
         return random_bits(t, random_key(t, a["key"]), tensor::row(dtype).bits, shape_argument(t, a["shape"]));
       }},
      {"random.uniform", "key, shape=(), dtype=None, minval=0.0, maxval=1.0",
       [](Tracer& t, const Arguments& a) -> Value {
         return uniform(t, random_key(t, a["key"]), shape_argument(t, a["shape"]), float_type(t, a["dtype"]),
                        a["minval"], a["maxval"]);
       }},
      shaped_row("random.normal", normal),
      {"random.randint", "key, shape, minval, maxval, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const DType dtype = t.to_dtype_or_none(a["dtype"]).value_or(DType::kInt32);
         const bool is_narrow =
             tensor::is_integer(dtype) && tensor::row(dtype).bits >= 8 && tensor::row(dtype).bits < 32;
         return (is_narrow ? narrow_randint : randint)(t, random_key(t, a["key"]), shape_argument(t, a["shape"]),
                                                       a["minval"], a["maxval"], dtype);
       }},
      {"random.bernoulli", "key, p=0.5, shape=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array p = t.inexact(a["p"]);
         const tensor::Dims dims = a["shape"].is_none() ? p.dims() : shape_argument(t, a["shape"]);
         return t.compare("LT", uniform(t, random_key(t, a["key"]), dims, p.dtype(), 0.0, 1.0),
                          t.broadcast_to(p, dims));
       }},
      {"random.permutation", "key, x, axis=0, independent=False", permutation},
      {"random.choice", "key, a, shape=(), replace=True, p=None", choice},
      {"random.categorical", "key, logits, axis=-1, shape=None", categorical},
      shaped_row("random.gumbel", gumbel),
      shaped_row("random.exponential",
                 [](Tracer& t, const Key& key, const tensor::Dims& dims, DType dtype) {
                   return t.negate(t.op("stablehlo.log_plus_one", {t.negate(uniform(t, key, dims, dtype, 0.0, 1.0))}));
                 }),
      shaped_row("random.laplace",
                 [](Tracer& t, const Key& key, const tensor::Dims& dims, DType dtype) {
                   const Array u = uniform(t, key, dims, dtype, above_minus_one(dtype), 1.0);
                   return t.multiply(t.op("stablehlo.sign", {u}),
                                     t.op("stablehlo.log_plus_one", {t.negate(t.op("stablehlo.abs", {u}))}));
                 }),
      {"random.truncated_normal", "key, lower, upper, shape=None, dtype=None", truncated_normal},
  };
}

}  // namespace meshd::numpy
