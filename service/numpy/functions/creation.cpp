// Functions that make arrays: zeros, arange, linspace, eye, array and so on; and what is asked of types.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "service/numpy/functions/shared.h"
#include "service/numpy/syntax/limits.h"
#include "service/numpy/trace/arithmetic.h"

namespace meshd::numpy {
namespace {

Array filled(Tracer& t, const Value& shape, const Value& number, DType dtype) {
  tensor::Dims dims = t.to_ints(shape, "a shape");
  for (const int64_t size : dims) {
    if (size < 0) t.refuse("a shape has sizes of at least 0, got " + shape_text(dims));
  }
  return t.full({dtype, std::move(dims)}, number);
}

Value full_like(Tracer& t, const Arguments& a, const Value& number) {
  const WeakType own = t.type_of(a["a"]);
  const DType dtype = a["dtype"].is_none() ? own.dtype : t.to_dtype(a["dtype"]);
  const tensor::Dims dims = a["shape"].is_none() ? t.dims_of(a["a"]) : tensor::Dims(t.to_ints(a["shape"], "a shape"));
  Array out =
      number.is_number() ? t.full({dtype, dims}, number) : t.broadcast_to(t.convert(t.array(number), dtype), dims);
  out.weak = own.weak && a["dtype"].is_none();
  return out;
}

Value arange(Tracer& t, const Arguments& a) {
  std::vector<Value> bounds{a["start"], a["stop"], a["step"]};
  if (bounds[1].is_none()) bounds = {int64_t{0}, a["start"], a["step"]};
  if (bounds[2].is_none()) bounds[2] = int64_t{1};
  bool is_whole = true;
  for (const Value& bound : bounds) {
    t.to_float(bound, "a bound of arange");
    is_whole = is_whole && !bound.is<double>();
  }
  const DType dtype = a["dtype"].is_none() ? (is_whole ? DType::kInt32 : DType::kFloat32) : t.to_dtype(a["dtype"]);
  const double start = t.to_float(bounds[0], "arange");
  const double step = t.to_float(bounds[2], "arange");
  if (step == 0) t.refuse("the step of arange cannot be 0");
  const double size = std::max(0.0, std::ceil((t.to_float(bounds[1], "arange") - start) / step));
  if (!(size < 1e12)) t.refuse("arange of so many numbers does not fit in memory");
  const auto count = static_cast<int64_t>(size);
  if (is_whole) {
    Array out = t.iota({dtype, {count}}, 0);
    if (step != 1) out = t.multiply(out, t.with_number(out, bounds[2]));
    return start == 0 ? out : t.add(out, t.with_number(out, bounds[0]));
  }
  // As NumPy computes it, in double, then rounded.
  if (count > kMaxConstantBytes / 8) {
    const Array steps = t.iota({dtype, {count}}, 0);
    return t.add(t.multiply(steps, t.with_number(steps, step)), t.with_number(steps, start));
  }
  std::vector<std::byte> bytes;
  const double second = start + step;
  for (int64_t i = 0; i < count; ++i) {
    const double value = i == 0 ? start : start + static_cast<double>(i) * (second - start);
    const auto one_value = t.element(dtype, value);
    bytes.insert(bytes.end(), one_value.begin(), one_value.end());
  }
  if (count == 0) return t.full({dtype, {0}}, 0.0);
  return t.constant({dtype, {count}}, std::move(bytes));
}

// start * (1 - i / n) + stop * (i / n), and the last one exactly stop.
Array linspace_of(Tracer& t, const Value& start, const Value& stop, int64_t count, bool endpoint, const Value& dtype) {
  if (count < 0) t.refuse("linspace makes at least 0 numbers");
  const std::vector<Array> both = t.inexact_arrays({start, stop});
  DType computed = both[0].dtype();
  const DType result = dtype.is_none() ? computed : t.to_dtype(dtype);
  const Array low = both[0];
  const Array high = both[1];
  tensor::Dims dims = low.dims();
  dims.insert(dims.begin(), count);
  const int64_t parts = endpoint ? count - 1 : count;
  std::vector<int64_t> into;
  for (int64_t i = 0; i < low.rank(); ++i) into.push_back(i + 1);
  const auto spread = [&](const Array& x, int64_t rows) {
    tensor::Dims wide = low.dims();
    wide.insert(wide.begin(), rows);
    return t.broadcast_in_dim(x, wide, into);
  };
  if (count == 0) return t.full({result, dims}, int64_t{0});
  if (parts <= 0) return t.convert(spread(low, count), result);
  const Array steps = t.iota({tensor::part_of(computed), {parts}}, 0);
  Array part = t.convert(t.divide(steps, t.with_number(steps, parts)), computed);
  tensor::Dims wide = low.dims();
  wide.insert(wide.begin(), parts);
  part = t.broadcast_in_dim(part, wide, {0});
  Array out = t.add(t.multiply(spread(low, parts), t.subtract(t.with_number(part, int64_t{1}), part)),
                    t.multiply(spread(high, parts), part));
  if (endpoint) out = t.concatenate({out, spread(high, 1)}, 0);
  if (tensor::is_integer(result) && !tensor::is_integer(computed)) out = t.op("stablehlo.floor", {out});
  return t.convert(out, result);
}

// 1 where column - row == k.
Array eye(Tracer& t, int64_t rows, int64_t columns, int64_t k, DType dtype) {
  const tensor::TensorType type{DType::kInt32, {rows, columns}};
  const Array row = t.iota(type, 0);
  return t.convert(t.compare("EQ", t.add(row, t.with_number(row, k)), t.iota(type, 1)), dtype);
}

Array as_array(Tracer& t, const Value& object, const Value& dtype) {
  const Array made = t.array(object);
  if (!dtype.is_none()) {
    const DType wanted = t.to_dtype(dtype);
    return object.is_number() ? t.full({wanted, {}}, object) : t.convert(made, wanted);
  }
  // An array of Python's numbers alone is not weak; an array stays as it is.
  Array out = made;
  if (object.array() == nullptr) out.weak = false;
  return out;
}

Value meshgrid(Tracer& t, const Arguments& a) {
  const std::vector<Value>& given = a.all("xi");
  const std::string indexing = t.to_text(a["indexing"], "indexing");
  if (indexing != "xy" && indexing != "ij") t.refuse("indexing is 'xy' or 'ij'");
  if (t.to_bool(a["sparse"], "sparse")) t.unsupported("meshgrid with sparse=True");
  tensor::Dims dims;
  for (const Value& x : given) dims.push_back(tensor::element_count(t.dims_of(x)));
  const bool swaps = indexing == "xy" && dims.size() > 1;
  if (swaps) std::swap(dims[0], dims[1]);
  std::vector<Value> out;
  for (size_t i = 0; i < given.size(); ++i) {
    const Array x = t.array(given[i]);
    const auto at = static_cast<int64_t>(swaps && i < 2 ? 1 - i : i);
    out.push_back(t.broadcast_in_dim(t.reshape(x, {tensor::element_count(x.type)}), dims, {at}));
  }
  return list_of(std::move(out), t.region_depth());
}

Value record(std::vector<std::pair<std::string, Value>> items) {
  auto made = std::make_shared<Dict>();
  made->is_record = true;
  made->items = std::move(items);
  hold_items(*made);
  return DictRef(std::move(made));
}

Value finfo(Tracer& t, const Arguments& a) {
  const DType dtype =
      tensor::part_of(a["dtype"].array() != nullptr ? a["dtype"].array()->dtype() : t.to_dtype(a["dtype"]));
  if (!tensor::is_float(dtype) || tensor::row(dtype).bits < 16) t.refuse("finfo takes a float type of 16 bits or more");
  const tensor::FloatFormat format = tensor::row(dtype).format;
  const double eps = std::ldexp(1.0, -format.mantissa_bits);
  const double most = std::ldexp(2.0 - eps, format.bias);
  const double tiny = std::ldexp(1.0, 1 - format.bias);
  // Each is an array of the type, as NumPy's scalars are.
  const auto number = [&](double value) -> Value { return t.full({dtype, {}}, value); };
  return record({{"eps", number(eps)},
                 {"max", number(most)},
                 {"min", number(-most)},
                 {"tiny", number(tiny)},
                 {"smallest_normal", number(tiny)},
                 {"bits", int64_t{tensor::row(dtype).bits}}});
}

Value iinfo(Tracer& t, const Arguments& a) {
  const DType dtype = t.to_dtype(a["dtype"]);
  if (!tensor::is_integer(dtype)) t.refuse("iinfo takes an integer type");
  return record({{"max", t.highest(dtype)}, {"min", t.lowest(dtype)}, {"bits", int64_t{tensor::row(dtype).bits}}});
}

Value issubdtype(Tracer& t, const Arguments& a) {
  const DType dtype = t.to_dtype(a["a"]);
  const auto* kind = a["b"].as<std::string>();
  if (kind == nullptr) return dtype == t.to_dtype(a["b"]);
  if (*kind == "floating") return tensor::is_float(dtype);
  if (*kind == "integer") return tensor::is_integer(dtype);
  if (*kind == "complexfloating") return tensor::is_complex(dtype);
  if (*kind == "inexact") return tensor::is_float(dtype) || tensor::is_complex(dtype);
  t.refuse("issubdtype knows jnp.floating, jnp.integer, jnp.inexact and jnp.complexfloating");
}

FunctionRow filled_row(std::string path, int64_t number) {
  return {std::move(path), "shape, dtype=None", [number](Tracer& t, const Arguments& a) -> Value {
            return filled(t, a["shape"], number, t.to_dtype_or_none(a["dtype"]).value_or(DType::kFloat32));
          }};
}

// The rows and columns of a triangle of an n x m matrix, row by row.
Value triangle_indices(Tracer& t, const Arguments& a, bool lower) {
  const int64_t rows = t.to_int(a["n"], "n");
  const int64_t columns = a["m"].is_none() ? rows : t.to_int(a["m"], "m");
  const int64_t k = t.to_int(a["k"], "k");
  constexpr int64_t kMostSide = 4096;
  if (rows < 0 || columns < 0 || rows > kMostSide || columns > kMostSide)
    t.refuse(fmt::format("the sides of a triangle are from 0 to {}", kMostSide));
  if (k < -kMostSide || k > kMostSide) t.refuse(fmt::format("k is from {} to {}", -kMostSide, kMostSide));
  t.count_steps(rows * columns / 64);
  std::vector<int64_t> row_numbers;
  std::vector<int64_t> column_numbers;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      if (lower ? j - i > k : j - i < k) continue;
      row_numbers.push_back(i);
      column_numbers.push_back(j);
    }
  }
  return tuple_of({t.integers(row_numbers), t.integers(column_numbers)});
}

}  // namespace

std::vector<FunctionRow> creation_functions() {
  return {
      filled_row("jnp.zeros", 0),
      filled_row("jnp.ones", 1),
      filled_row("jnp.empty", 0),
      {"jnp.full", "shape, fill_value, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const Value& value = a["fill_value"];
         const DType dtype = a["dtype"].is_none() ? t.type_of(value).dtype : t.to_dtype(a["dtype"]);
         Array out = t.typed(value, {dtype, t.to_ints(a["shape"], "a shape")});
         out.weak = a["dtype"].is_none() && t.type_of(value).weak;
         return out;
       }},
      {"jnp.zeros_like", "a, dtype=None, shape=None",
       [](Tracer& t, const Arguments& a) { return full_like(t, a, int64_t{0}); }},
      {"jnp.ones_like", "a, dtype=None, shape=None",
       [](Tracer& t, const Arguments& a) { return full_like(t, a, int64_t{1}); }},
      {"jnp.empty_like", "a, dtype=None, shape=None",
       [](Tracer& t, const Arguments& a) { return full_like(t, a, int64_t{0}); }},
      {"jnp.full_like", "a, fill_value, dtype=None, shape=None",
       [](Tracer& t, const Arguments& a) { return full_like(t, a, a["fill_value"]); }},
      {"jnp.array", "object, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value { return as_array(t, a["object"], a["dtype"]); }},
      {"jnp.asarray", "a, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value { return as_array(t, a["a"], a["dtype"]); }},
      {"jnp.arange", "start, stop=None, step=None, dtype=None", arange},
      {"jnp.linspace", "start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0",
       [](Tracer& t, const Arguments& a) -> Value {
         const int64_t count = t.to_int(a["num"], "num");
         const bool endpoint = t.to_bool(a["endpoint"], "endpoint");
         Array out = linspace_of(t, a["start"], a["stop"], count, endpoint, a["dtype"]);
         out = move_axes(t, out, {0}, {t.to_int(a["axis"], "axis")});
         if (!t.to_bool(a["retstep"], "retstep")) return out;
         const Array span = *t.binary("-", Value(t.inexact(a["stop"])), a["start"]).array();
         return tuple_of({out, t.binary("/", Value(span), endpoint ? count - 1 : count)});
       }},
      {"jnp.logspace", "start, stop, num=50, endpoint=True, base=10.0, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array exponents = linspace_of(t, a["start"], a["stop"], t.to_int(a["num"], "num"),
                                             t.to_bool(a["endpoint"], "endpoint"), None{});
         const Array out = power(t, a["base"], Value(exponents));
         return a["dtype"].is_none() ? out : t.convert(out, t.to_dtype(a["dtype"]));
       }},
      {"jnp.eye", "N, M=None, k=0, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const int64_t rows = t.to_int(a["N"], "N");
         return eye(t, rows, a["M"].is_none() ? rows : t.to_int(a["M"], "M"), t.to_int(a["k"], "k"),
                    t.to_dtype_or_none(a["dtype"]).value_or(DType::kFloat32));
       }},
      {"jnp.identity", "n, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const int64_t rows = t.to_int(a["n"], "n");
         return eye(t, rows, rows, 0, t.to_dtype_or_none(a["dtype"]).value_or(DType::kFloat32));
       }},
      {"jnp.tri", "N, M=None, k=0, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const int64_t rows = t.to_int(a["N"], "N");
         const tensor::TensorType type{DType::kInt32, {rows, a["M"].is_none() ? rows : t.to_int(a["M"], "M")}};
         const Array row = t.iota(type, 0);
         const Array below = t.compare("GE", t.add(row, t.with_number(row, t.to_int(a["k"], "k"))), t.iota(type, 1));
         return t.convert(below, t.to_dtype_or_none(a["dtype"]).value_or(DType::kFloat32));
       }},
      {"jnp.meshgrid", "*xi, sparse=False, indexing='xy'", meshgrid},
      {"jnp.indices", "dimensions, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         const tensor::Dims dims = t.to_ints(a["dimensions"], "dimensions");
         const DType dtype = t.to_dtype_or_none(a["dtype"]).value_or(DType::kInt32);
         tensor::Dims row = dims;
         row.insert(row.begin(), 1);
         std::vector<Array> parts;
         for (size_t i = 0; i < dims.size(); ++i) parts.push_back(t.iota({dtype, row}, static_cast<int64_t>(i + 1)));
         if (parts.empty()) t.refuse("indices takes at least one size");
         return t.concatenate(parts, 0);
       }},
      {"jnp.astype", "x, dtype",
       [](Tracer& t, const Arguments& a) -> Value { return t.convert(t.array(a["x"]), t.to_dtype(a["dtype"])); }},
      {"lax.bitcast_convert_type", "operand, new_dtype",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["operand"]);
         const DType dtype = t.to_dtype(a["new_dtype"]);
         if (tensor::size_bytes(x.dtype()) != tensor::size_bytes(dtype))
           t.unsupported("bitcast_convert_type between types of different widths");
         return t.bitcast(x, dtype);
       }},
      {"jnp.tril_indices", "n, k=0, m=None",
       [](Tracer& t, const Arguments& a) { return triangle_indices(t, a, true); }},
      {"jnp.triu_indices", "n, k=0, m=None",
       [](Tracer& t, const Arguments& a) { return triangle_indices(t, a, false); }},
      {"jnp.copy", "a", [](Tracer& t, const Arguments& a) -> Value { return t.array(a["a"]); }},
      {"jnp.item", "a",
       [](Tracer& t, const Arguments&) -> Value {
         t.refuse("item() needs to know the array while the program is traced; use the array itself");
       }},
      {"jnp.tolist", "a",
       [](Tracer& t, const Arguments&) -> Value {
         t.refuse("tolist() needs to know the array while the program is traced; use the array itself");
       }},
      {"jnp.shape", "a", [](Tracer& t, const Arguments& a) { return tuple_of_sizes(t.dims_of(a["a"])); }},
      {"jnp.ndim", "a",
       [](Tracer& t, const Arguments& a) -> Value { return static_cast<int64_t>(t.dims_of(a["a"]).size()); }},
      {"jnp.size", "a",
       [](Tracer& t, const Arguments& a) -> Value { return tensor::element_count(t.dims_of(a["a"])); }},
      {"jnp.finfo", "dtype", finfo},
      {"jnp.iinfo", "dtype", iinfo},
      {"jnp.issubdtype", "a, b", issubdtype},
      {"jnp.dtype", "dtype", [](Tracer& t, const Arguments& a) -> Value { return t.to_dtype(a["dtype"]); }},
      {"jnp.result_type", "*args",
       [](Tracer& t, const Arguments& a) -> Value {
         std::vector<WeakType> types;
         for (const Value& each : a.all("args"))
           types.push_back(each.is<DType>() ? WeakType{*each.as<DType>(), false} : t.type_of(each));
         const auto joint = promoted(types);
         if (!joint) t.refuse("the types have no common type");
         return joint->dtype;
       }},
  };
}

}  // namespace meshd::numpy
