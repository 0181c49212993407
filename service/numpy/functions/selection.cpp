// Choosing and ordering elements: where, take, sort, searchsorted, interp; slices at places that arrays give.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "service/numpy/functions/shared.h"
#include "service/numpy/trace/indexing.h"

namespace meshd::numpy {
namespace {

Value where_row(Tracer& t, const Arguments& a) {
  if (a["x"].is_none() && a["y"].is_none() && !a["size"].is_none()) {
    return t.call(*t.globals().find("jnp.nonzero"),
                  CallArguments{{a["condition"]}, {{"size", a["size"]}, {"fill_value", a["fill_value"]}}});
  }
  if (!a["size"].is_none() || !a["fill_value"].is_none()) t.refuse("where takes size and fill_value without x and y");
  if (a["x"].is_none() || a["y"].is_none())
    t.unsupported("where(condition) alone, whose shape depends on data; give x and y, or size=, the number of places");
  return where(t, t.array(a["condition"]), a["x"], a["y"]);
}

Value select(Tracer& t, const Arguments& a) {
  const std::vector<Value> conditions = t.to_items(a["condlist"], "condlist");
  const std::vector<Value> choices = t.to_items(a["choicelist"], "choicelist");
  if (conditions.empty() || conditions.size() != choices.size()) t.refuse("select takes as many conditions as choices");
  std::vector<Value> all = choices;
  all.push_back(a["default"]);
  std::vector<Array> typed = t.promoted_arrays(all);
  Array out = typed.back();
  for (size_t i = choices.size(); i-- > 0;) out = where(t, t.array(conditions[i]), typed[i], out);
  return out;
}

// `out` where `inside` holds. An index outside gives NaN, the smallest of signed integers, the largest of others.
Array filled_outside(Tracer& t, const Array& inside, const Array& out) {
  const DType dtype = out.dtype();
  if (tensor::is_float(dtype) || tensor::is_complex(dtype))
    return t.select(inside, out, t.full_like(out, std::numeric_limits<double>::quiet_NaN()));
  if (tensor::is_signed_integer(dtype)) return t.select(inside, out, t.full_like(out, t.lowest(dtype)));
  return t.select(inside, out, t.logical_not(t.full_like(out, int64_t{0})));
}

Value take(Tracer& t, const Arguments& a) {
  Array x = t.array(a["a"]);
  if (a["axis"].is_none()) x = t.reshape(x, {tensor::element_count(x.type)});
  const int64_t axis = a["axis"].is_none() ? 0 : t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  const std::string mode = a["mode"].is_none() ? "fill" : t.to_text(a["mode"], "mode");
  Array index = t.array(a["indices"]);
  if (!tensor::is_integer(index.dtype())) t.refuse("the indices of take are integers, got " + describe(a["indices"]));
  if (tensor::row(index.dtype()).bits < 32) index = t.convert(index, DType::kInt32);
  const int64_t size = x.dims()[static_cast<size_t>(axis)];
  if (size == 0) t.refuse("take from a dimension of size 0");
  const Array zero = t.full_like(index, int64_t{0});
  const Array last = t.full_like(index, size - 1);
  if (mode == "clip") return take_rows(t, x, t.minimum(t.maximum(index, zero), last), axis);
  if (mode == "wrap") {
    const Array wrapped = *t.binary("%", Value(index), size).array();
    return take_rows(t, x, wrapped, axis);
  }
  if (mode != "fill") t.unsupported("take with mode '" + mode + "'");
  if (tensor::is_signed_integer(index.dtype()))
    index = t.select(t.compare("LT", index, zero), t.add(index, t.full_like(index, size)), index);
  const Array out = take_rows(t, x, index, axis);
  const Array inside = t.logical_and(t.compare("GE", index, zero), t.compare("LE", index, last));
  std::vector<int64_t> into;
  for (int64_t i = 0; i < index.rank(); ++i) into.push_back(axis + i);
  return filled_outside(t, t.broadcast_in_dim(inside, out.dims(), into), out);
}

// The index of every element along the other dimensions, and `indices` along `axis`.
Value take_along_axis(Tracer& t, const Arguments& a) {
  Array x = t.array(a["arr"]);
  Array indices = t.array(a["indices"]);
  if (!tensor::is_integer(indices.dtype())) t.refuse("the indices of take_along_axis are integers");
  if (a["axis"].is_none()) x = t.reshape(x, {tensor::element_count(x.type)});
  const int64_t axis = a["axis"].is_none() ? 0 : t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  if (indices.rank() != x.rank()) t.refuse("take_along_axis takes indices of as many dimensions as the array");
  std::vector<Value> index;
  tensor::Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = indices.dims()[static_cast<size_t>(axis)];
  dims = t.broadcast_dims({dims, indices.dims()});
  for (int64_t d = 0; d < x.rank(); ++d) {
    const bool is_one = x.dims()[static_cast<size_t>(d)] == 1;
    if (d == axis) {
      index.push_back(t.broadcast_to(indices, dims));
    } else {
      index.push_back(is_one ? t.full({DType::kInt32, dims}, int64_t{0}) : t.iota({DType::kInt32, dims}, d));
    }
  }
  // Outside of the array: as take.
  const Array at = *index[static_cast<size_t>(axis)].array();
  const Array out = index_array(t, x, tuple_of(index));
  const int64_t size = x.dims()[static_cast<size_t>(axis)];
  const Array inside =
      t.logical_and(t.compare("GE", at, t.full_like(at, -size)), t.compare("LT", at, t.full_like(at, size)));
  return filled_outside(t, inside, out);
}

Value sort(Tracer& t, const Arguments& a) {
  Array x = t.array(a["a"]);
  if (a["axis"].is_none()) x = t.reshape(x, {tensor::element_count(x.type)});
  const int64_t axis = a["axis"].is_none() ? 0 : t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  const Array out = t.sort({x}, axis, 1)[0];
  return t.to_bool(a["descending"], "descending") ? t.reverse(out, {axis}) : out;
}

Value argsort(Tracer& t, const Arguments& a) {
  Array x = t.array(a["a"]);
  if (a["axis"].is_none()) x = t.reshape(x, {tensor::element_count(x.type)});
  const int64_t axis = a["axis"].is_none() ? 0 : t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  const bool descending = t.to_bool(a["descending"], "descending");
  if (descending) x = t.reverse(x, {axis});
  const Array places = t.iota({DType::kInt32, x.dims()}, axis);
  const Array out = t.sort({x, descending ? t.reverse(places, {axis}) : places}, axis, 1)[1];
  return descending ? t.reverse(out, {axis}) : out;
}

Value lexsort(Tracer& t, const Arguments& a) {
  std::vector<Value> keys = t.to_items(a["keys"], "keys");
  if (keys.empty()) t.refuse("lexsort takes at least one key");
  std::reverse(keys.begin(), keys.end());
  std::vector<Array> arrays;
  for (const Value& key : keys) arrays.push_back(t.array(key));
  const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), arrays[0].rank());
  for (const Array& each : arrays) {
    if (each.dims() != arrays[0].dims()) t.refuse("the keys of lexsort have one shape");
  }
  arrays.push_back(t.iota({DType::kInt32, arrays[0].dims()}, axis));
  return t.sort(arrays, axis, keys.size()).back();
}

// How many elements of sorted `a` are before each of v.
Array search_sorted(Tracer& t, const Value& a, const Value& v, const std::string& side) {
  const std::vector<Array> both = t.promoted_arrays({a, v});
  if (both[0].rank() != 1) t.refuse("searchsorted takes a sorted array of one dimension");
  if (side != "left" && side != "right") t.refuse("side is 'left' or 'right'");
  tensor::Dims dims = both[1].dims();
  dims.push_back(both[0].dims()[0]);
  const Array sorted = t.broadcast_in_dim(both[0], dims, {static_cast<int64_t>(dims.size()) - 1});
  std::vector<int64_t> into;
  for (int64_t i = 0; i < both[1].rank(); ++i) into.push_back(i);
  const Array values = t.broadcast_in_dim(both[1], dims, into);
  Array before = t.compare(side == "left" ? "LT" : "LE", sorted, values);
  if (tensor::is_float(sorted.dtype())) {
    // NaN is behind all numbers.
    const Array value_nan = t.compare("NE", values, values);
    const Array sorted_number = t.compare("EQ", sorted, sorted);
    before = t.logical_or(before,
                          t.logical_and(value_nan, side == "left" ? sorted_number : t.full_like(sorted_number, true)));
  }
  return t.reduce("stablehlo.add", t.convert(before, DType::kInt32), {static_cast<int64_t>(dims.size()) - 1},
                  int64_t{0});
}

// Bins may rise or fall, which is data.
Value digitize(Tracer& t, const Arguments& a) {
  const std::string side = t.to_bool(a["right"], "right") ? "left" : "right";
  const Array bins = t.array(a["bins"]);
  if (bins.rank() != 1) t.refuse("digitize takes bins of one dimension");
  const int64_t count = bins.dims()[0];
  const Value rising = search_sorted(t, bins, a["x"], side);
  if (count < 2) return rising;
  const auto bin = [&](int64_t at) { return t.reshape(t.slice_dim(bins, 0, at, at + 1), {}); };
  const Value falling = search_sorted(t, t.reverse(bins, {0}), a["x"], side);
  return where(t, t.compare("GE", bin(count - 1), bin(0)), rising, t.binary("-", count, falling));
}

Value interp(Tracer& t, const Arguments& a) {
  const std::vector<Value> given{a["x"], a["xp"], a["fp"]};
  std::vector<WeakType> types;
  for (const Value& each : given) types.push_back(t.type_of(each));
  const auto joint = promoted(types);
  if (!joint) t.refuse("the types have no common type");
  const DType dtype = inexact_of(*joint).dtype;
  const auto typed = [&](const Value& value) { return t.typed(value, {dtype, t.dims_of(value)}); };
  const Array x = typed(a["x"]);
  const Array xp = typed(a["xp"]);
  const Array fp = typed(a["fp"]);
  if (xp.rank() != 1 || fp.dims() != xp.dims() || xp.dims()[0] == 0)
    t.refuse("xp and fp have one dimension and one size");
  const int64_t last = xp.dims()[0] - 1;
  Array i = search_sorted(t, xp, x, "right");
  i = t.minimum(t.maximum(i, t.full_like(i, int64_t{1})), t.full_like(i, std::max<int64_t>(last, 1)));
  const Array before = t.subtract(i, t.full_like(i, int64_t{1}));
  const auto at = [&](const Array& from, const Array& place) { return take_rows(t, from, place, 0); };
  const Array df = t.subtract(at(fp, i), at(fp, before));
  const Array dx = t.subtract(at(xp, i), at(xp, before));
  const Array delta = t.subtract(x, at(xp, before));
  const Array tiny = t.full_like(dx, 0.0);
  const Array flat = t.compare("EQ", dx, tiny);
  const Array slope = t.divide(delta, t.select(flat, t.full_like(dx, int64_t{1}), dx));
  Array f = t.select(flat, at(fp, before), t.add(at(fp, before), t.multiply(slope, df)));
  const auto end = [&](int64_t place, const Value& given_end) {
    return given_end.is_none() ? t.reshape(t.slice_dim(fp, 0, place, place + 1), {}) : typed(given_end);
  };
  const auto edge = [&](int64_t place) {
    return t.broadcast_to(t.reshape(t.slice_dim(xp, 0, place, place + 1), {}), x.dims());
  };
  f = t.select(t.compare("LT", x, edge(0)), t.broadcast_to(end(0, a["left"]), x.dims()), f);
  return t.select(t.compare("GT", x, edge(last)), t.broadcast_to(end(last, a["right"]), x.dims()), f);
}

Value diff(Tracer& t, const Arguments& a) {
  Array x = t.array(a["a"]);
  const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  const int64_t n = t.to_int(a["n"], "n");
  if (n < 0 || n > 64) t.refuse("diff is taken 0 to 64 times");
  for (int64_t i = 0; i < n; ++i) {
    const int64_t size = x.dims()[static_cast<size_t>(axis)];
    if (size == 0) break;
    const Array next = t.slice_dim(x, axis, 1, size);
    const Array before = t.slice_dim(x, axis, 0, size - 1);
    x = x.dtype() == DType::kBool ? t.compare("NE", next, before) : t.subtract(next, before);
  }
  return x;
}

Value is_in(Tracer& t, const Arguments& a) {
  const std::vector<Array> both = t.promoted_arrays({a["element"], a["test_elements"]});
  tensor::Dims dims = both[0].dims();
  const Array flat = t.reshape(both[1], {tensor::element_count(both[1].type)});
  dims.push_back(flat.dims()[0]);
  std::vector<int64_t> into;
  for (int64_t i = 0; i < both[0].rank(); ++i) into.push_back(i);
  const auto last = static_cast<int64_t>(dims.size()) - 1;
  const Array same = t.compare("EQ", t.broadcast_in_dim(both[0], dims, into), t.broadcast_in_dim(flat, dims, {last}));
  const Array found = t.reduce("stablehlo.or", same, {last}, false);
  return t.to_bool(a["invert"], "invert") ? t.logical_not(found) : found;
}

Value bincount(Tracer& t, const Arguments& a) {
  if (a["length"].is_none()) t.unsupported("bincount without length, whose shape depends on data");
  const Array x = t.array(a["x"]);
  const int64_t length = t.to_int(a["length"], "length");
  const Array weights = a["weights"].is_none() ? t.full({DType::kInt32, x.dims()}, int64_t{1}) : t.array(a["weights"]);
  const Array zeros = t.full({weights.dtype(), {length}}, int64_t{0});
  const Array index = t.maximum(x, t.full_like(x, int64_t{0}));
  return update_array(t, zeros, Value(index), "add", Value(weights));
}

Value top_k(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["operand"]);
  if (x.rank() == 0) t.refuse("top_k takes an array of at least one dimension");
  const int64_t k = t.to_int(a["k"], "k");
  if (k < 0 || k > x.dims().back()) t.refuse(fmt::format("k is 0 to {}, got {}", x.dims().back(), k));
  tensor::Dims dims = x.dims();
  dims.back() = k;
  const std::vector<Array> out =
      t.ops("chlo.top_k", {x}, {{"k", ir::integer_attr(k)}}, {{x.dtype(), dims}, {DType::kInt32, dims}}, {});
  return tuple_of({out[0], out[1]});
}

// --- slices at places that arrays give

std::vector<Array> starts_of(Tracer& t, const Value& given, const Array& x) {
  std::vector<Value> items = given.array() != nullptr && given.array()->rank() == 1
                                 ? t.items_of(given, "start_indices")
                                 : t.to_items(given, "start_indices");
  if (static_cast<int64_t>(items.size()) != x.rank())
    t.refuse(fmt::format("there are {} starts for {}", items.size(), describe(Value(x))));
  std::vector<Array> out;
  for (size_t i = 0; i < items.size(); ++i) {
    Array start = t.convert(t.array(items[i]), DType::kInt32);
    if (start.rank() != 0) t.refuse("each start is a scalar");
    // Negative starts count from behind.
    const Array zero = t.full_like(start, int64_t{0});
    out.push_back(t.select(t.compare("LT", start, zero), t.add(start, t.full_like(start, x.dims()[i])), start));
  }
  return out;
}

std::vector<Array> starts_in_dim(Tracer& t, const Value& start, const Array& x, int64_t axis) {
  std::vector<Value> all(x.dims().size(), Value(int64_t{0}));
  all[static_cast<size_t>(axis)] = start;
  return starts_of(t, tuple_of(std::move(all)), x);
}

void check_sizes(Tracer& t, const Array& x, const std::vector<int64_t>& sizes) {
  bool fits = sizes.size() == x.dims().size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = sizes[i] >= 0 && sizes[i] <= x.dims()[i];
  if (!fits)
    t.refuse(fmt::format("slices of sizes {} do not fit into shape {}", shape_text(sizes), shape_text(x.dims())));
}

Array sliced_in_dim(Tracer& t, const Array& x, const Value& start, int64_t size, int64_t axis) {
  std::vector<int64_t> sizes = x.dims();
  sizes[static_cast<size_t>(axis)] = size;
  check_sizes(t, x, sizes);
  return t.dynamic_slice(x, starts_in_dim(t, start, x, axis), sizes);
}

std::vector<FunctionRow> dynamic_slices() {
  return {
      {"lax.dynamic_slice", "operand, start_indices, slice_sizes",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["operand"]);
         const std::vector<int64_t> sizes = t.to_ints(a["slice_sizes"], "slice_sizes");
         check_sizes(t, x, sizes);
         return t.dynamic_slice(x, starts_of(t, a["start_indices"], x), sizes);
       }},
      {"lax.dynamic_slice_in_dim", "operand, start_index, slice_size, axis=0",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["operand"]);
         return sliced_in_dim(t, x, a["start_index"], t.to_int(a["slice_size"], "slice_size"),
                              t.axis_of(t.to_int(a["axis"], "axis"), x.rank()));
       }},
      {"lax.dynamic_index_in_dim", "operand, index, axis=0, keepdims=True",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["operand"]);
         const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
         const Array out = sliced_in_dim(t, x, a["index"], 1, axis);
         if (t.to_bool(a["keepdims"], "keepdims")) return out;
         tensor::Dims dims = x.dims();
         dims.erase(dims.begin() + axis);
         return t.reshape(out, dims);
       }},
      {"lax.dynamic_update_slice", "operand, update, start_indices",
       [](Tracer& t, const Arguments& a) -> Value {
         const std::vector<Array> both = t.promoted_arrays({a["operand"], a["update"]});
         check_sizes(t, both[0], both[1].dims());
         return t.dynamic_update_slice(both[0], both[1], starts_of(t, a["start_indices"], both[0]));
       }},
      {"lax.dynamic_update_slice_in_dim", "operand, update, start_index, axis",
       [](Tracer& t, const Arguments& a) -> Value {
         const std::vector<Array> both = t.promoted_arrays({a["operand"], a["update"]});
         check_sizes(t, both[0], both[1].dims());
         return t.dynamic_update_slice(
             both[0], both[1],
             starts_in_dim(t, a["start_index"], both[0], t.axis_of(t.to_int(a["axis"], "axis"), both[0].rank())));
       }},
  };
}

}  // namespace

std::vector<FunctionRow> selection_functions() {
  std::vector<FunctionRow> out{
      {"jnp.where", "condition, x=None, y=None, *, size=None, fill_value=None", where_row},
      {"lax.select", "pred, on_true, on_false",
       [](Tracer& t, const Arguments& a) -> Value {
         return where(t, t.array(a["pred"]), a["on_true"], a["on_false"]);
       }},
      {"jnp.select", "condlist, choicelist, default=0", select},
      {"jnp.take", "a, indices, axis=None, mode=None", take},
      {"jnp.take_along_axis", "arr, indices, axis=-1", take_along_axis},
      {"jnp.sort", "a, axis=-1, descending=False", sort},
      {"jnp.argsort", "a, axis=-1, descending=False", argsort},
      {"jnp.lexsort", "keys, axis=-1", lexsort},
      {"jnp.searchsorted", "a, v, side='left'",
       [](Tracer& t, const Arguments& a) -> Value {
         return search_sorted(t, a["a"], a["v"], t.to_text(a["side"], "side"));
       }},
      {"jnp.digitize", "x, bins, right=False", digitize},
      {"jnp.interp", "x, xp, fp, left=None, right=None", interp},
      {"jnp.diff", "a, n=1, axis=-1", diff},
      {"jnp.isin", "element, test_elements, invert=False", is_in},
      {"jnp.bincount", "x, weights=None, length=None", bincount},
      {"lax.top_k", "operand, k", top_k},
  };
  std::vector<FunctionRow> more = dynamic_slices();
  std::move(more.begin(), more.end(), std::back_inserter(out));
  return out;
}

}  // namespace meshd::numpy
