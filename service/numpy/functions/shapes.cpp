// Shapes: reshape, transpose, stack, pad, roll and so on.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "service/numpy/functions/shared.h"
#include "service/numpy/trace/indexing.h"

namespace meshd::numpy {
namespace {

int64_t axis_argument(Tracer& t, const Value& axis, int64_t rank) { return t.axis_of(t.to_int(axis, "axis"), rank); }

// Sizes with at most one -1, which is worked out.
tensor::Dims new_shape(Tracer& t, const Array& x, std::vector<int64_t> sizes) {
  const int64_t total = tensor::element_count(x.type);
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& size : sizes) {
    if (size == -1 && open == nullptr) {
      open = &size;
    } else if (size < 0) {
      t.refuse("a new shape has sizes of at least 0, and -1 once");
    } else if (__builtin_mul_overflow(known, size, &known)) {
      t.refuse("the new shape " + shape_text(sizes) + " is too large");
    }
  }
  if (open != nullptr && known > 0 && total % known == 0) *open = total / known;
  if (open != nullptr ? *open == -1 : known != total) {
    t.refuse(fmt::format("an array of shape {} ({} elements) cannot become {}", shape_text(x.dims()), total,
                         shape_text(sizes)));
  }
  return sizes;
}

// reshape(x, 2, 3), reshape(x, (2, 3)).
std::vector<int64_t> sizes_of(Tracer& t, const std::vector<Value>& given) {
  if (given.size() == 1) return t.to_ints(given[0], "a shape");
  return t.to_ints(tuple_of(given), "a shape");
}

Value reshape(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["a"]);
  std::vector<Value> sizes = a.all("sizes");
  if (!a["shape"].is_none()) sizes = {a["shape"]};
  const std::string order = t.to_text(a["order"], "order");
  if (order == "F") {
    std::vector<int64_t> back(x.dims().size());
    std::iota(back.rbegin(), back.rend(), int64_t{0});
    tensor::Dims dims = new_shape(t, x, sizes_of(t, sizes));
    std::reverse(dims.begin(), dims.end());
    std::vector<int64_t> forth(dims.size());
    std::iota(forth.rbegin(), forth.rend(), int64_t{0});
    return t.transpose(t.reshape(t.transpose(x, back), dims), forth);
  }
  if (order != "C") t.refuse("the order of a reshape is 'C' or 'F'");
  return t.reshape(x, new_shape(t, x, sizes_of(t, sizes)));
}

Value transpose(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["a"]);
  std::vector<Value> given = a.all("order");
  if (!a["axes"].is_none()) given = {a["axes"]};
  std::vector<int64_t> order;
  if (given.empty() || (given.size() == 1 && given[0].is_none())) {
    order.resize(x.dims().size());
    std::iota(order.rbegin(), order.rend(), int64_t{0});
  } else {
    for (const int64_t axis : sizes_of(t, given)) order.push_back(t.axis_of(axis, x.rank()));
  }
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i) || sorted.size() != x.dims().size())
      t.refuse(fmt::format("the axes of a transpose are each of the {} dimensions once", x.rank()));
  }
  return t.transpose(x, order);
}

Value squeeze(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["a"]);
  std::vector<int64_t> axes;
  if (!a["axis"].is_none()) axes = t.to_axes(a["axis"], x.rank());
  tensor::Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t size = x.dims()[static_cast<size_t>(i)];
    const bool named = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (named && size != 1)
      t.refuse(fmt::format("dimension {} of shape {} is not 1 and cannot be squeezed", i, shape_text(x.dims())));
    if (named || (a["axis"].is_none() && size == 1)) continue;
    dims.push_back(size);
  }
  return t.reshape(x, dims);
}

Value expand_dims(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["a"]);
  std::vector<int64_t> axes = t.to_ints(a["axis"], "axis");
  const int64_t rank = x.rank() + static_cast<int64_t>(axes.size());
  for (int64_t& axis : axes) axis = t.axis_of(axis, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) t.refuse("an axis is there twice");
  return t.expand_dims(x, axes);
}

std::vector<Array> arrays_of(Tracer& t, const Value& value, const char* what) {
  const std::vector<Value> items = t.to_items(value, what);
  if (items.empty()) t.refuse(std::string(what) + " takes at least one array");
  return t.promoted_arrays(items);
}

Array concatenate(Tracer& t, const std::vector<Array>& arrays, int64_t axis) {
  const int64_t dim = t.axis_of(axis, arrays[0].rank());
  for (const Array& each : arrays) {
    bool fits = each.rank() == arrays[0].rank();
    for (int64_t i = 0; fits && i < each.rank(); ++i) {
      const auto at = static_cast<size_t>(i);
      fits = i == dim || each.dims()[at] == arrays[0].dims()[at];
    }
    if (!fits)
      t.refuse(fmt::format("arrays of shapes {} and {} cannot be concatenated along axis {}",
                           shape_text(arrays[0].dims()), shape_text(each.dims()), dim));
  }
  return t.concatenate(arrays, dim);
}

Array stack(Tracer& t, std::vector<Array> arrays, int64_t axis) {
  const int64_t dim = t.axis_of(axis, arrays[0].rank() + 1);
  for (Array& each : arrays) {
    if (each.dims() != arrays[0].dims())
      t.refuse("arrays of shapes " + shape_text(arrays[0].dims()) + " and " + shape_text(each.dims()) +
               " cannot be stacked");
  }
  for (Array& each : arrays) each = t.expand_dims(each, {dim});
  return t.concatenate(arrays, dim);
}

Array at_least(Tracer& t, const Array& x, int64_t rank) {
  tensor::Dims dims = x.dims();
  if (rank == 3 && x.rank() == 2) dims.push_back(1);
  if (rank == 3 && x.rank() == 1) dims = {1, dims[0], 1};
  while (static_cast<int64_t>(dims.size()) < rank) dims.insert(dims.begin(), 1);
  return t.reshape(x, dims);
}

FunctionRow stacking_row(std::string path, int64_t rank, int64_t axis) {
  return {std::move(path), "tup", [rank, axis](Tracer& t, const Arguments& a) -> Value {
            std::vector<Array> arrays = arrays_of(t, a["tup"], "stacking");
            for (Array& each : arrays) each = at_least(t, each, rank);
            return concatenate(t, arrays, axis == 1 && arrays[0].rank() == 1 ? 0 : axis);
          }};
}

Value split(Tracer& t, const Array& x, const Value& sections, int64_t axis, bool uneven) {
  const int64_t dim = t.axis_of(axis, x.rank());
  const int64_t size = x.dims()[static_cast<size_t>(dim)];
  std::vector<int64_t> ends;
  if (sections.is<int64_t>()) {
    const int64_t parts = *sections.as<int64_t>();
    if (parts <= 0 || parts > 10'000) t.refuse("an array is split into at least one part, and 10000 at most");
    if (!uneven && size % parts != 0)
      t.refuse(
          fmt::format("{} elements cannot be split into {} equal parts; array_split makes uneven ones", size, parts));
    int64_t at = 0;
    for (int64_t i = 0; i + 1 < parts; ++i) ends.push_back(at += size / parts + (i < size % parts ? 1 : 0));
  } else {
    for (int64_t end : t.to_ints(sections, "the places of a split"))
      ends.push_back(std::clamp<int64_t>(end < 0 ? end + size : end, 0, size));
  }
  ends.push_back(size);
  std::vector<Value> out;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    out.push_back(t.slice_dim(x, dim, std::min(begin, end), end));
    begin = end;
  }
  return list_of(std::move(out), t.region_depth());
}

FunctionRow splitting_row(std::string path, int64_t axis) {
  return {std::move(path), "ary, indices_or_sections", [axis](Tracer& t, const Arguments& a) {
            const Array x = t.array(a["ary"]);
            return split(t, x, a["indices_or_sections"], axis == 1 && x.rank() == 1 ? 0 : axis, false);
          }};
}

Array roll_one(Tracer& t, const Array& x, int64_t shift, int64_t dim) {
  const int64_t size = x.dims()[static_cast<size_t>(dim)];
  if (size == 0) return x;
  const int64_t by = ((shift % size) + size) % size;
  if (by == 0) return x;
  return t.concatenate({t.slice_dim(x, dim, size - by, size), t.slice_dim(x, dim, 0, size - by)}, dim);
}

Value roll(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["a"]);
  if (a["axis"].is_none()) {
    const Array flat = t.reshape(x, {tensor::element_count(x.type)});
    return t.reshape(roll_one(t, flat, t.to_int(a["shift"], "shift"), 0), x.dims());
  }
  std::vector<int64_t> axes = t.to_ints(a["axis"], "axis");
  std::vector<int64_t> shifts = t.to_ints(a["shift"], "shift");
  if (shifts.size() == 1) shifts.resize(axes.size(), shifts[0]);
  if (axes.size() == 1) axes.resize(shifts.size(), axes[0]);
  if (axes.size() != shifts.size()) t.refuse("roll takes as many shifts as axes");
  Array out = x;
  for (size_t i = 0; i < axes.size(); ++i) out = roll_one(t, out, shifts[i], t.axis_of(axes[i], x.rank()));
  return out;
}

// The padding before and after each dimension.
std::vector<std::pair<int64_t, int64_t>> pad_widths(Tracer& t, const Value& width, int64_t rank) {
  std::vector<std::pair<int64_t, int64_t>> out;
  const auto pair_of = [&](const Value& each) {
    const std::vector<int64_t> both = t.to_ints(each, "pad_width");
    if (both.empty() || both.size() > 2 || both[0] < 0 || both.back() < 0)
      t.refuse("pad_width is a number, a pair, or a pair for each dimension, none negative");
    return std::pair(both[0], both.back());
  };
  const Sequence* sequence = width.sequence();
  const bool nested = sequence != nullptr && !sequence->items.empty() && sequence->items[0].sequence() != nullptr;
  if (!nested) {
    out.assign(static_cast<size_t>(rank), pair_of(width));
  } else {
    for (const Value& each : sequence->items) out.push_back(pair_of(each));
    if (out.size() == 1) out.resize(static_cast<size_t>(rank), out[0]);
  }
  if (static_cast<int64_t>(out.size()) != rank)
    t.refuse(fmt::format("pad_width has {} pairs for {} dimensions", out.size(), rank));
  return out;
}

// What is before (or behind) the elements of a dimension: copies of the edge, or of what a mirror shows.
Array padding_of(Tracer& t, const Array& x, int64_t dim, int64_t count, bool before, const std::string& mode) {
  const int64_t size = x.dims()[static_cast<size_t>(dim)];
  if (mode == "edge") {
    tensor::Dims dims = x.dims();
    dims[static_cast<size_t>(dim)] = count;
    return t.broadcast_to(before ? t.slice_dim(x, dim, 0, 1) : t.slice_dim(x, dim, size - 1, size), dims);
  }
  if (mode == "wrap") {
    if (count > size) t.unsupported("wrap padding that is wider than the array");
    return before ? t.slice_dim(x, dim, size - count, size) : t.slice_dim(x, dim, 0, count);
  }
  const int64_t skip = mode == "reflect" ? 1 : 0;
  if (count > size - skip) t.unsupported(mode + " padding that is wider than the array");
  return t.reverse(
      before ? t.slice_dim(x, dim, skip, skip + count) : t.slice_dim(x, dim, size - skip - count, size - skip), {dim});
}

Value pad(Tracer& t, const Arguments& a) {
  Array x = t.array(a["array"]);
  const auto widths = pad_widths(t, a["pad_width"], x.rank());
  const std::string mode = t.to_text(a["mode"], "mode");
  if (mode == "constant") {
    std::vector<int64_t> low;
    std::vector<int64_t> high;
    for (const auto& [before, after] : widths) {
      low.push_back(before);
      high.push_back(after);
    }
    if (a["constant_values"].sequence() != nullptr) t.unsupported("pad with several constant_values");
    return t.pad(x, t.typed(a["constant_values"], {x.dtype(), {}}), low, high);
  }
  if (mode != "edge" && mode != "wrap" && mode != "reflect" && mode != "symmetric")
    t.unsupported("pad with mode '" + mode + "'");
  for (int64_t dim = 0; dim < x.rank(); ++dim) {
    const auto [before, after] = widths[static_cast<size_t>(dim)];
    std::vector<Array> parts;
    if (before > 0) parts.push_back(padding_of(t, x, dim, before, true, mode));
    parts.push_back(x);
    if (after > 0) parts.push_back(padding_of(t, x, dim, after, false, mode));
    x = t.concatenate(parts, dim);
  }
  return x;
}

Array repeat(Tracer& t, const Array& x, int64_t count, int64_t dim) {
  if (count < 0) t.refuse("repeats are at least 0");
  tensor::Dims wide = x.dims();
  wide.insert(wide.begin() + dim + 1, count);
  std::vector<int64_t> into;
  for (int64_t i = 0; i < x.rank(); ++i) into.push_back(i <= dim ? i : i + 1);
  tensor::Dims dims = x.dims();
  dims[static_cast<size_t>(dim)] *= count;
  return t.reshape(t.broadcast_in_dim(x, wide, into), dims);
}

Value tile(Tracer& t, const Arguments& a) {
  Array x = t.array(a["A"]);
  std::vector<int64_t> reps = t.to_ints(a["reps"], "reps");
  tensor::Dims dims = x.dims();
  while (dims.size() < reps.size()) dims.insert(dims.begin(), 1);
  while (reps.size() < dims.size()) reps.insert(reps.begin(), 1);
  tensor::Dims wide;
  std::vector<int64_t> into;
  tensor::Dims out;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reps[i] < 0) t.refuse("reps are at least 0");
    wide.push_back(reps[i]);
    into.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(dims[i]);
    out.push_back(dims[i] * reps[i]);
  }
  return t.reshape(t.broadcast_in_dim(t.reshape(x, dims), wide, into), out);
}

// Where row - column says so, else 0.
Value triangle_of(Tracer& t, const Arguments& a, bool lower) {
  const Array x = t.array(a["m"]);
  if (x.rank() < 2) t.refuse("tril and triu take arrays of two dimensions or more");
  const tensor::TensorType type{DType::kInt32, {x.dims()[static_cast<size_t>(x.rank() - 2)], x.dims().back()}};
  const Array row = t.iota(type, 0);
  const int64_t k = t.to_int(a["k"], "k") - (lower ? 0 : 1);
  const Array below = t.compare("GE", t.add(row, t.with_number(row, k)), t.iota(type, 1));
  const Array mask = t.broadcast_to(below, x.dims());
  const Array zero = t.full_like(x, int64_t{0});
  return lower ? t.select(mask, x, zero) : t.select(mask, zero, x);
}

Array diagonal(Tracer& t, const Array& given, int64_t offset, int64_t axis1, int64_t axis2) {
  const int64_t first = t.axis_of(axis1, given.rank());
  const int64_t second = t.axis_of(axis2, given.rank());
  if (first == second) t.refuse("a diagonal has two axes");
  const Array x = move_axes(t, given, {first, second}, {-2, -1});
  const int64_t rows = x.dims()[static_cast<size_t>(x.rank() - 2)];
  const int64_t columns = x.dims().back();
  const int64_t row = offset < 0 ? -offset : 0;
  const int64_t column = offset > 0 ? offset : 0;
  const int64_t count = std::max<int64_t>(0, std::min(rows - row, columns - column));
  const Array steps = t.iota({DType::kInt32, {count}}, 0);
  const Value index =
      tuple_of({Ellipsis{}, t.add(steps, t.with_number(steps, row)), t.add(steps, t.with_number(steps, column))});
  return index_array(t, x, index);
}

Value diag(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["v"]);
  const int64_t k = t.to_int(a["k"], "k");
  if (x.rank() == 2) return diagonal(t, x, k, 0, 1);
  if (x.rank() != 1) t.refuse("diag takes arrays of one or two dimensions");
  const int64_t side = x.dims()[0] + std::abs(k);
  const tensor::TensorType type{DType::kInt32, {side, side}};
  const Array row = t.iota(type, 0);
  const Array on = t.compare("EQ", t.add(row, t.with_number(row, k)), t.iota(type, 1));
  const int64_t low = k > 0 ? k : 0;
  const Array zero = t.full({x.dtype(), {}}, int64_t{0});
  const Array wide = t.broadcast_in_dim(t.pad(x, zero, {low}, {k > 0 ? 0 : -k}), {side, side}, {1});
  return t.select(on, wide, t.full_like(wide, int64_t{0}));
}

FunctionRow flipping_row(std::string path, const char* signature, std::optional<int64_t> axis) {
  return {std::move(path), signature, [axis](Tracer& t, const Arguments& a) -> Value {
            const Array x = t.array(a["m"]);
            return t.reverse(x,
                             axis ? std::vector<int64_t>{t.axis_of(*axis, x.rank())} : t.to_axes(a["axis"], x.rank()));
          }};
}

std::vector<FunctionRow> arranging() {
  return {
      {"jnp.reshape", "a, *sizes, shape=None, order='C'", reshape},
      {"jnp.transpose", "a, *order, axes=None", transpose},
      {"jnp.permute_dims", "a, *order, axes=None", transpose},
      {"jnp.matrix_transpose", "x",
       [](Tracer& t, const Arguments& a) { return t.attribute(Value(t.array(a["x"])), "mT"); }},
      {"jnp.swapaxes", "a, axis1, axis2",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["a"]);
         std::vector<int64_t> order(x.dims().size());
         std::iota(order.begin(), order.end(), int64_t{0});
         std::swap(order[static_cast<size_t>(axis_argument(t, a["axis1"], x.rank()))],
                   order[static_cast<size_t>(axis_argument(t, a["axis2"], x.rank()))]);
         return t.transpose(x, order);
       }},
      {"jnp.moveaxis", "a, source, destination",
       [](Tracer& t, const Arguments& a) -> Value {
         return move_axes(t, t.array(a["a"]), t.to_ints(a["source"], "source"),
                          t.to_ints(a["destination"], "destination"));
       }},
      {"jnp.ravel", "a",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["a"]);
         return t.reshape(x, {tensor::element_count(x.type)});
       }},
      {"jnp.flatten", "a",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["a"]);
         return t.reshape(x, {tensor::element_count(x.type)});
       }},
      {"jnp.squeeze", "a, axis=None", squeeze},
      {"jnp.expand_dims", "a, axis", expand_dims},
      {"jnp.broadcast_to", "array, shape",
       [](Tracer& t, const Arguments& a) -> Value {
         return t.broadcast_to(t.array(a["array"]), t.to_ints(a["shape"], "a shape"));
       }},
      {"jnp.broadcast_arrays", "*args",
       [](Tracer& t, const Arguments& a) {
         std::vector<tensor::Dims> shapes;
         for (const Value& each : a.all("args")) shapes.push_back(t.dims_of(each));
         const tensor::Dims dims = t.broadcast_dims(shapes);
         std::vector<Value> out;
         for (const Value& each : a.all("args")) out.push_back(t.broadcast_to(t.array(each), dims));
         return list_of(std::move(out), t.region_depth());
       }},
      {"jnp.atleast_1d", "x", [](Tracer& t, const Arguments& a) -> Value { return at_least(t, t.array(a["x"]), 1); }},
      {"jnp.atleast_2d", "x", [](Tracer& t, const Arguments& a) -> Value { return at_least(t, t.array(a["x"]), 2); }},
      {"jnp.atleast_3d", "x", [](Tracer& t, const Arguments& a) -> Value { return at_least(t, t.array(a["x"]), 3); }},
      flipping_row("jnp.flip", "m, axis=None", std::nullopt),
      flipping_row("jnp.flipud", "m", 0),
      flipping_row("jnp.fliplr", "m", 1),
      {"jnp.rot90", "m, k=1",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["m"]);
         const int64_t turns = ((t.to_int(a["k"], "k") % 4) + 4) % 4;
         std::vector<int64_t> order(x.dims().size());
         std::iota(order.begin(), order.end(), int64_t{0});
         if (order.size() < 2) t.refuse("rot90 takes arrays of two dimensions or more");
         std::swap(order[0], order[1]);
         if (turns == 0) return x;
         if (turns == 2) return t.reverse(x, {0, 1});
         return turns == 1 ? t.transpose(t.reverse(x, {1}), order) : t.reverse(t.transpose(x, order), {1});
       }},
      {"jnp.roll", "a, shift, axis=None", roll},
  };
}

std::vector<FunctionRow> joining() {
  return {
      {"jnp.concatenate", "arrays, axis=0, dtype=None",
       [](Tracer& t, const Arguments& a) -> Value {
         std::vector<Array> arrays = arrays_of(t, a["arrays"], "concatenate");
         if (a["axis"].is_none()) {
           for (Array& each : arrays) each = t.reshape(each, {tensor::element_count(each.type)});
         }
         const Array out = concatenate(t, arrays, a["axis"].is_none() ? 0 : t.to_int(a["axis"], "axis"));
         return a["dtype"].is_none() ? out : t.convert(out, t.to_dtype(a["dtype"]));
       }},
      {"jnp.stack", "arrays, axis=0",
       [](Tracer& t, const Arguments& a) -> Value {
         return stack(t, arrays_of(t, a["arrays"], "stack"), t.to_int(a["axis"], "axis"));
       }},
      stacking_row("jnp.vstack", 2, 0),
      stacking_row("jnp.hstack", 1, 1),
      stacking_row("jnp.dstack", 3, 2),
      {"jnp.column_stack", "tup",
       [](Tracer& t, const Arguments& a) -> Value {
         std::vector<Array> arrays = arrays_of(t, a["tup"], "column_stack");
         for (Array& each : arrays) {
           if (each.rank() < 2) each = t.reshape(each, {tensor::element_count(each.type), 1});
         }
         return concatenate(t, arrays, 1);
       }},
      {"jnp.append", "arr, values, axis=None",
       [](Tracer& t, const Arguments& a) -> Value {
         std::vector<Array> both = t.promoted_arrays({a["arr"], a["values"]});
         if (a["axis"].is_none()) {
           for (Array& each : both) each = t.reshape(each, {tensor::element_count(each.type)});
         }
         return concatenate(t, both, a["axis"].is_none() ? 0 : t.to_int(a["axis"], "axis"));
       }},
      {"jnp.split", "ary, indices_or_sections, axis=0",
       [](Tracer& t, const Arguments& a) {
         return split(t, t.array(a["ary"]), a["indices_or_sections"], t.to_int(a["axis"], "axis"), false);
       }},
      {"jnp.array_split", "ary, indices_or_sections, axis=0",
       [](Tracer& t, const Arguments& a) {
         return split(t, t.array(a["ary"]), a["indices_or_sections"], t.to_int(a["axis"], "axis"), true);
       }},
      splitting_row("jnp.vsplit", 0),
      splitting_row("jnp.hsplit", 1),
      {"jnp.unstack", "x, axis=0",
       [](Tracer& t, const Arguments& a) {
         const Array x = t.array(a["x"]);
         return tuple_of(t.items_of(Value(move_axes(t, x, {t.to_int(a["axis"], "axis")}, {0})), "unstack"));
       }},
      {"jnp.repeat", "a, repeats, axis=None",
       [](Tracer& t, const Arguments& a) -> Value {
         Array x = t.array(a["a"]);
         if (a["repeats"].array() != nullptr)
           t.unsupported("repeat with an array of repeats, whose shape depends on data");
         if (a["axis"].is_none()) x = t.reshape(x, {tensor::element_count(x.type)});
         return repeat(t, x, t.to_int(a["repeats"], "repeats"),
                       a["axis"].is_none() ? 0 : axis_argument(t, a["axis"], x.rank()));
       }},
      {"jnp.tile", "A, reps", tile},
      {"jnp.pad", "array, pad_width, mode='constant', constant_values=0", pad},
  };
}

std::vector<FunctionRow> diagonals() {
  return {
      {"jnp.tril", "m, k=0", [](Tracer& t, const Arguments& a) { return triangle_of(t, a, true); }},
      {"jnp.triu", "m, k=0", [](Tracer& t, const Arguments& a) { return triangle_of(t, a, false); }},
      {"jnp.diag", "v, k=0", diag},
      {"jnp.diagonal", "a, offset=0, axis1=0, axis2=1",
       [](Tracer& t, const Arguments& a) -> Value {
         return diagonal(t, t.array(a["a"]), t.to_int(a["offset"], "offset"), t.to_int(a["axis1"], "axis1"),
                         t.to_int(a["axis2"], "axis2"));
       }},
      {"jnp.trace", "a, offset=0, axis1=0, axis2=1",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array line = diagonal(t, t.array(a["a"]), t.to_int(a["offset"], "offset"), t.to_int(a["axis1"], "axis1"),
                                     t.to_int(a["axis2"], "axis2"));
         return t.call(*t.globals().find("jnp.sum"), std::vector<Value>{line, int64_t{-1}});
       }},
  };
}

}  // namespace

Array move_axes(Tracer& t, const Array& x, std::vector<int64_t> from, std::vector<int64_t> to) {
  if (from.size() != to.size()) t.refuse("moveaxis takes as many destinations as sources");
  for (int64_t& axis : from) axis = t.axis_of(axis, x.rank());
  for (int64_t& axis : to) axis = t.axis_of(axis, x.rank());
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::find(from.begin(), from.end(), i) == from.end()) order.push_back(i);
  }
  std::vector<size_t> nth(from.size());
  std::iota(nth.begin(), nth.end(), size_t{0});
  std::sort(nth.begin(), nth.end(), [&](size_t i, size_t j) { return to[i] < to[j]; });
  for (const size_t i : nth) {
    if (to[i] > static_cast<int64_t>(order.size())) t.refuse("an axis is there twice");
    order.insert(order.begin() + to[i], from[i]);
  }
  if (static_cast<int64_t>(order.size()) != x.rank()) t.refuse("an axis is there twice");
  return t.transpose(x, order);
}

std::vector<FunctionRow> shape_functions() {
  std::vector<FunctionRow> out;
  for (auto part : {arranging, joining, diagonals}) {
    std::vector<FunctionRow> rows = part();
    std::move(rows.begin(), rows.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace meshd::numpy
