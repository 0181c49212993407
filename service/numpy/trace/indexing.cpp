#include "service/numpy/trace/indexing.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/ops/movement/gather_scatter.h"

namespace meshd::numpy {
namespace {

// What indexes one dimension of the array.
struct DimIndex {
  enum class Kind : uint8_t { kSlice, kInteger, kArray };
  Kind kind = Kind::kSlice;
  SlicedRange range;
  int64_t integer = 0;
  Array array;  ///< of integers; scalars too
};

// An index, dimension by dimension; and where the result has dimensions of size one (None), counted without them.
struct Indices {
  std::vector<DimIndex> dims;
  /// For each None how many dimensions of the array are in front of it.
  std::vector<size_t> added;

  [[nodiscard]] bool has_arrays() const {
    return std::any_of(dims.begin(), dims.end(),
                       [](const DimIndex& dim) { return dim.kind == DimIndex::Kind::kArray; });
  }
};

bool is_advanced(const DimIndex& dim) { return dim.kind != DimIndex::Kind::kSlice; }

// A list beside other indices, x[:, [2, 0]]: of ints, or of bools that say which to take.
Array listed_index(Tracer& t, const Value& list, int64_t size) {
  const std::vector<Value>& items = list.sequence()->items;
  const bool is_mask =
      !items.empty() && std::all_of(items.begin(), items.end(), [](const Value& item) { return item.is<bool>(); });
  if (!is_mask) return items.empty() ? t.full({DType::kInt32, {0}}, int64_t{0}) : t.array(list);
  if (static_cast<int64_t>(items.size()) != size)
    t.refuse(fmt::format("the mask has {} bools for a dimension of {}", items.size(), size));
  std::vector<Value> chosen;
  for (size_t i = 0; i < items.size(); ++i) {
    if (*items[i].as<bool>()) chosen.emplace_back(static_cast<int64_t>(i));
  }
  if (chosen.empty()) return t.full({DType::kInt32, {0}}, int64_t{0});
  return t.array(tuple_of(std::move(chosen)));
}

DimIndex one_index(Tracer& t, const Value& item, int64_t size) {
  DimIndex out;
  if (const auto* slice = item.as<SliceRef>()) {
    out.range = sliced_range(t, **slice, size);
    return out;
  }
  if (item.is<int64_t>()) {
    out.kind = DimIndex::Kind::kInteger;
    out.integer = *item.as<int64_t>();
    if (out.integer < 0) out.integer += size;
    return out;
  }
  const Array* array = item.array();
  Array made;
  if (item.sequence() != nullptr) {
    made = listed_index(t, item, size);
    array = &made;
  }
  if (array == nullptr)
    t.refuse("an index is an int, a slice, ..., None or an array of integers, got " + describe(item));
  if (array->dtype() == DType::kBool)
    t.refuse("an array of bools gives a shape that depends on data; jnp.where(mask, x, other) keeps the shape");
  if (!tensor::is_integer(array->dtype())) t.refuse("an index has to be of integers, got " + describe(item));
  out.kind = DimIndex::Kind::kArray;
  // Narrow types cannot count all elements of a large dimension.
  out.array = tensor::row(array->dtype()).bits < 32 ? t.convert(*array, DType::kInt32) : *array;
  if (!tensor::is_signed_integer(out.array.dtype())) return out;
  // Negative indices count from behind.
  const Array zero = t.full_like(out.array, int64_t{0});
  out.array = t.select(t.compare("LT", out.array, zero), t.add(out.array, t.full_like(out.array, size)), out.array);
  return out;
}

Indices read_indices(Tracer& t, const Array& x, const Value& index) {
  std::vector<Value> items{index};
  if (const Sequence* sequence = index.sequence(); sequence != nullptr && sequence->is_tuple)
    items = sequence->items;
  else if (sequence != nullptr)
    t.refuse("a list alone does not index an array; write x[jnp.array(list)]");
  size_t given = 0;
  size_t ellipses = 0;
  for (const Value& item : items) {
    if (item.is<bool>()) t.refuse("True and False do not index arrays here");
    if (item.is<Ellipsis>()) ++ellipses;
    if (!item.is<Ellipsis>() && !item.is_none()) ++given;
  }
  if (ellipses > 1) t.refuse("an index has '...' once");
  const auto rank = static_cast<size_t>(x.rank());
  if (given > rank) t.refuse(fmt::format("there are {} indices for {}", given, describe(Value(x))));
  if (ellipses == 0) items.emplace_back(Ellipsis{});
  Indices out;
  for (const Value& item : items) {
    if (item.is_none()) {
      out.added.push_back(out.dims.size());
    } else if (item.is<Ellipsis>()) {
      for (size_t i = given; i < rank; ++i) {
        DimIndex all;
        all.range = {0, x.dims()[out.dims.size()], 1};
        out.dims.push_back(std::move(all));
      }
    } else {
      out.dims.push_back(one_index(t, item, x.dims()[out.dims.size()]));
    }
  }
  return out;
}

// Where the dimensions of the result come from.
struct ResultLayout {
  tensor::Dims broadcast;        ///< of all indices that are no slices
  size_t broadcast_at = 0;       ///< how many slices are in front of them
  bool is_front = false;         ///< in front of everything, None too: they are apart from each other
  std::vector<size_t> sliced;    ///< dimensions of the array that are sliced, in order
  std::vector<size_t> advanced;  ///< the others
};

ResultLayout layout_of(Tracer& t, const Indices& indices) {
  ResultLayout out;
  std::vector<tensor::Dims> shapes;
  const bool has_arrays = indices.has_arrays();
  bool is_split = false;
  for (size_t d = 0; d < indices.dims.size(); ++d) {
    const DimIndex& dim = indices.dims[d];
    if (!is_advanced(dim)) {
      out.sliced.push_back(d);
      continue;
    }
    // In NumPy, indices apart from each other put their dimensions in front.
    if (!out.advanced.empty() && out.advanced.back() + 1 != d) is_split = true;
    for (const size_t added : indices.added) is_split = is_split || (!out.advanced.empty() && added == d);
    if (out.advanced.empty()) out.broadcast_at = out.sliced.size();
    out.advanced.push_back(d);
    shapes.push_back(dim.kind == DimIndex::Kind::kArray ? dim.array.dims() : tensor::Dims{});
  }
  out.is_front = is_split && has_arrays;
  if (out.is_front) out.broadcast_at = 0;
  out.broadcast = t.broadcast_dims(shapes);
  return out;
}

// Puts the dimensions of size one where None stands.
tensor::Dims with_added(const tensor::Dims& dims, const Indices& indices, const ResultLayout& layout) {
  tensor::Dims out;
  const auto added_at = [&](size_t dim) { return std::count(indices.added.begin(), indices.added.end(), dim); };
  size_t at = 0;
  bool broadcast_done = false;
  const auto put_broadcast = [&] {
    for (size_t i = 0; i < layout.broadcast.size(); ++i) out.push_back(dims[at++]);
    broadcast_done = true;
  };
  if (layout.is_front) put_broadcast();
  for (size_t d = 0; d <= indices.dims.size(); ++d) {
    out.insert(out.end(), static_cast<size_t>(added_at(d)), 1);
    if (d == indices.dims.size()) break;
    if (!is_advanced(indices.dims[d])) {
      out.push_back(dims[at++]);
    } else if (!broadcast_done) {
      put_broadcast();
    }
  }
  return out;
}

// Slices, and reversals for negative steps. `dims` of other indices stay whole.
Array sliced(Tracer& t, const Array& x, const Indices& indices) {
  std::vector<int64_t> starts;
  std::vector<int64_t> limits;
  std::vector<int64_t> strides;
  std::vector<int64_t> reversed;
  for (size_t d = 0; d < indices.dims.size(); ++d) {
    const DimIndex& dim = indices.dims[d];
    if (is_advanced(dim)) {
      starts.push_back(0);
      limits.push_back(x.dims()[d]);
      strides.push_back(1);
      continue;
    }
    const SlicedRange& range = dim.range;
    const int64_t last = range.start + (range.count - 1) * range.step;
    if (range.count == 0) {
      starts.push_back(0);
      limits.push_back(0);
      strides.push_back(1);
    } else if (range.step > 0) {
      starts.push_back(range.start);
      limits.push_back(last + 1);
      strides.push_back(range.count == 1 ? 1 : range.step);
    } else {
      starts.push_back(last);
      limits.push_back(range.start + 1);
      strides.push_back(range.count == 1 ? 1 : -range.step);
      if (range.count > 1) reversed.push_back(static_cast<int64_t>(d));
    }
  }
  return t.reverse(t.slice(x, starts, limits, std::move(strides)), reversed);
}

Array scalar_index(Tracer& t, const DimIndex& dim, DType dtype) {
  if (dim.kind == DimIndex::Kind::kInteger) return t.full({dtype, {}}, dim.integer);
  return t.convert(dim.array, dtype);
}

// Static ints and scalar arrays: a dynamic slice of one element in these dimensions.
Array pick(Tracer& t, const Array& x, const Indices& indices) {
  std::vector<int64_t> sizes = x.dims();
  std::vector<Array> starts;
  tensor::Dims kept;
  for (size_t d = 0; d < indices.dims.size(); ++d) {
    const DimIndex& dim = indices.dims[d];
    if (is_advanced(dim)) {
      if (sizes[d] == 0) t.refuse("an index into a dimension of size 0");
      sizes[d] = 1;
      starts.push_back(scalar_index(t, dim, DType::kInt32));
    } else {
      kept.push_back(sizes[d]);
      starts.push_back(t.full({DType::kInt32, {}}, int64_t{0}));
    }
  }
  return t.reshape(t.dynamic_slice(x, starts, sizes), kept);
}

// Static ints alone: a slice.
Array pick_static(Tracer& t, const Array& x, const Indices& indices) {
  std::vector<int64_t> starts(x.dims().size(), 0);
  std::vector<int64_t> limits = x.dims();
  tensor::Dims kept;
  for (size_t d = 0; d < indices.dims.size(); ++d) {
    if (!is_advanced(indices.dims[d])) {
      kept.push_back(limits[d]);
      continue;
    }
    if (limits[d] == 0) t.refuse("an index into a dimension of size 0");
    starts[d] = std::clamp<int64_t>(indices.dims[d].integer, 0, limits[d] - 1);
    limits[d] = starts[d] + 1;
  }
  return t.reshape(t.slice(x, starts, limits), kept);
}

// [broadcast..., k]: the k indices side by side.
Array stacked(Tracer& t, const std::vector<Array>& parts, const tensor::Dims& broadcast) {
  std::vector<Array> columns;
  for (const Array& part : parts) {
    tensor::Dims dims = broadcast;
    dims.push_back(1);
    columns.push_back(t.reshape(t.broadcast_to(part, broadcast), dims));
  }
  return t.concatenate(columns, static_cast<int64_t>(broadcast.size()));
}

DType index_type(const Indices& indices) {
  for (const DimIndex& dim : indices.dims) {
    if (dim.kind == DimIndex::Kind::kArray && tensor::row(dim.array.dtype()).bits == 64) return DType::kInt64;
  }
  return DType::kInt32;
}

std::vector<int64_t> as_int64(const std::vector<size_t>& values) { return {values.begin(), values.end()}; }

// Moves the first `count` dimensions behind `after` of the others.
Array move_front(Tracer& t, const Array& x, size_t count, size_t after) {
  std::vector<int64_t> permutation;
  for (size_t i = 0; i < after; ++i) permutation.push_back(static_cast<int64_t>(count + i));
  for (size_t i = 0; i < count; ++i) permutation.push_back(static_cast<int64_t>(i));
  for (auto i = static_cast<int64_t>(count + after); i < x.rank(); ++i) permutation.push_back(i);
  return t.transpose(x, permutation);
}

Array gather(Tracer& t, const Array& x, const Indices& indices, const ResultLayout& layout) {
  const DType dtype = index_type(indices);
  std::vector<Array> parts;
  for (const size_t d : layout.advanced) {
    if (x.dims()[d] == 0 && tensor::element_count(layout.broadcast) > 0)
      t.refuse("an index into a dimension of size 0");
    parts.push_back(scalar_index(t, indices.dims[d], dtype));
  }
  const Array starts = stacked(t, parts, layout.broadcast);
  std::vector<int64_t> sizes = x.dims();
  for (const size_t d : layout.advanced) sizes[d] = 1;
  const auto batch = static_cast<int64_t>(layout.broadcast.size());
  std::vector<int64_t> offsets;
  tensor::Dims dims = layout.broadcast;
  for (size_t i = 0; i < layout.sliced.size(); ++i) {
    offsets.push_back(batch + static_cast<int64_t>(i));
    dims.push_back(x.dims()[layout.sliced[i]]);
  }
  Array out = t.op("stablehlo.gather", {x, starts},
                   {{"dimension_numbers",
                     {ir::DictAttr{"stablehlo.gather",
                                   {{"offset_dims", ir::int_array_attr(offsets)},
                                    {"collapsed_slice_dims", ir::int_array_attr(as_int64(layout.advanced))},
                                    {"operand_batching_dims", ir::int_array_attr({})},
                                    {"start_indices_batching_dims", ir::int_array_attr({})},
                                    {"start_index_map", ir::int_array_attr(as_int64(layout.advanced))},
                                    {"index_vector_dim", ir::integer_attr(batch)}}}}},
                    {"slice_sizes", ir::int_array_attr(sizes)},
                    {"indices_are_sorted", {ir::IntegerAttr{0, "i1"}}},
                    {std::string(ops::kPromisedInside), {ir::IntegerAttr{1, "i1"}}}},
                   tensor::TensorType{x.dtype(), dims});
  return move_front(t, out, layout.broadcast.size(), layout.broadcast_at);
}

// --- updates

Array reduced(Tracer& t, std::string_view method, const Array& a, const Array& b) {
  if (method == "add") return t.add(a, b);
  if (method == "multiply") return t.multiply(a, b);
  if (method == "min") return t.minimum(a, b);
  if (method == "max") return t.maximum(a, b);
  return b;
}

bool is_contiguous(const Indices& indices, const Array& x) {
  for (size_t d = 0; d < indices.dims.size(); ++d) {
    const DimIndex& dim = indices.dims[d];
    if (dim.kind == DimIndex::Kind::kArray) return false;
    if (dim.kind == DimIndex::Kind::kSlice && dim.range.step != 1) return false;
    if (dim.kind == DimIndex::Kind::kInteger && (dim.integer < 0 || dim.integer >= x.dims()[d])) return false;
  }
  return true;
}

// A block at a static place.
Array update_block(Tracer& t, const Array& x, const Indices& indices, std::string_view method, const Array& value) {
  std::vector<int64_t> starts;
  std::vector<int64_t> limits;
  for (const DimIndex& dim : indices.dims) {
    const bool is_slice = dim.kind == DimIndex::Kind::kSlice;
    starts.push_back(is_slice ? dim.range.start : dim.integer);
    limits.push_back(starts.back() + (is_slice ? dim.range.count : 1));
  }
  tensor::Dims dims;
  std::vector<Array> scalars;
  for (size_t d = 0; d < starts.size(); ++d) {
    dims.push_back(limits[d] - starts[d]);
    scalars.push_back(t.full({DType::kInt32, {}}, starts[d]));
  }
  Array update = t.reshape(value, dims);
  if (tensor::element_count(dims) == 0) return x;
  if (method != "set") update = reduced(t, method, t.slice(x, starts, limits), update);
  if (dims == x.dims()) return update;
  return t.dynamic_update_slice(x, update, scalars);
}

// Slices that are not whole become arrays of indices beside the others.
Array scatter(Tracer& t, const Array& x, const Indices& indices, const ResultLayout& layout, std::string_view method,
              const Array& value) {
  const DType dtype = index_type(indices);
  std::vector<size_t> walked;  // sliced dimensions that are indexed one by one
  std::vector<size_t> whole;
  for (const size_t d : layout.sliced) {
    const SlicedRange& range = indices.dims[d].range;
    const bool is_whole = range.start == 0 && range.step == 1 && range.count == x.dims()[d];
    (is_whole ? whole : walked).push_back(d);
  }
  tensor::Dims batch = layout.broadcast;
  for (const size_t d : walked) batch.push_back(indices.dims[d].range.count);
  std::vector<int64_t> into;
  for (size_t i = 0; i < layout.broadcast.size(); ++i) into.push_back(static_cast<int64_t>(i));
  std::vector<Array> parts;
  std::vector<size_t> mapped;
  for (const size_t d : layout.advanced) {
    parts.push_back(
        t.broadcast_in_dim(t.broadcast_to(scalar_index(t, indices.dims[d], dtype), layout.broadcast), batch, into));
    mapped.push_back(d);
  }
  for (size_t i = 0; i < walked.size(); ++i) {
    const SlicedRange& range = indices.dims[walked[i]].range;
    Array steps = t.iota({dtype, {range.count}}, 0);
    steps = t.add(t.multiply(steps, t.with_number(steps, range.step)), t.with_number(steps, range.start));
    parts.push_back(t.broadcast_in_dim(steps, batch, {static_cast<int64_t>(layout.broadcast.size() + i)}));
    mapped.push_back(walked[i]);
  }
  const Array starts = stacked(t, parts, batch);
  // The value's dimensions: those of the indices, walked slices, whole slices.
  std::vector<int64_t> permutation;
  const auto place_of = [&](size_t d) {
    const auto nth =
        static_cast<size_t>(std::find(layout.sliced.begin(), layout.sliced.end(), d) - layout.sliced.begin());
    return static_cast<int64_t>(nth < layout.broadcast_at ? nth : nth + layout.broadcast.size());
  };
  for (size_t i = 0; i < layout.broadcast.size(); ++i)
    permutation.push_back(static_cast<int64_t>(layout.broadcast_at + i));
  for (const size_t d : walked) permutation.push_back(place_of(d));
  for (const size_t d : whole) permutation.push_back(place_of(d));
  const Array update = t.transpose(value, permutation);
  std::vector<int64_t> windows;
  for (size_t i = 0; i < whole.size(); ++i) windows.push_back(static_cast<int64_t>(batch.size() + i));
  std::vector<size_t> inserted = mapped;
  std::sort(inserted.begin(), inserted.end());
  const ir::Type scalar = ir::Type::of({x.dtype(), {}});
  std::vector<ir::Region> regions;
  regions.push_back(t.region({scalar, scalar}, [&](const std::vector<ir::ValueId>& ids) {
    return std::vector<ir::ValueId>{reduced(t, method, t.array_of(ids[0]), t.array_of(ids[1])).id};
  }));
  return t.ops("stablehlo.scatter", {x, starts, update},
               {{"scatter_dimension_numbers",
                 {ir::DictAttr{"stablehlo.scatter",
                               {{"update_window_dims", ir::int_array_attr(windows)},
                                {"inserted_window_dims", ir::int_array_attr(as_int64(inserted))},
                                {"input_batching_dims", ir::int_array_attr({})},
                                {"scatter_indices_batching_dims", ir::int_array_attr({})},
                                {"scatter_dims_to_operand_dims", ir::int_array_attr(as_int64(mapped))},
                                {"index_vector_dim", ir::integer_attr(static_cast<int64_t>(batch.size()))}}}}},
                {"indices_are_sorted", {ir::IntegerAttr{0, "i1"}}},
                {"unique_indices", {ir::IntegerAttr{0, "i1"}}}},
               {x.type}, std::move(regions))[0];
}

}  // namespace

SlicedRange sliced_range(Tracer& t, const Slice& slice, int64_t size) {
  const auto part = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    if (value.array() != nullptr)
      t.refuse(
          "the bounds of a slice have to be static ints; jax.lax.dynamic_slice_in_dim takes a start that is an array");
    return t.to_int(value, "a bound of a slice");
  };
  SlicedRange out;
  out.step = part(slice.step, 1);
  if (out.step == 0) t.refuse("the step of a slice cannot be 0");
  if (out.step > size + 1) out.step = size + 1;
  if (out.step < -size - 1) out.step = -size - 1;
  const int64_t low = out.step > 0 ? 0 : -1;
  const int64_t high = out.step > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    int64_t at = part(value, 0);
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, high);
  };
  out.start = bound(slice.start, out.step > 0 ? 0 : size - 1);
  const int64_t stop = bound(slice.stop, out.step > 0 ? size : -1);
  const int64_t span = out.step > 0 ? stop - out.start : out.start - stop;
  const int64_t stride = out.step > 0 ? out.step : -out.step;
  out.count = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (out.count == 0) out.start = 0;
  return out;
}

Array index_array(Tracer& t, const Array& x, const Value& index) {
  const Indices indices = read_indices(t, x, index);
  const ResultLayout layout = layout_of(t, indices);
  Array out = sliced(t, x, indices);
  if (!layout.advanced.empty()) {
    if (!indices.has_arrays()) {
      out = pick_static(t, out, indices);
    } else if (layout.broadcast.empty()) {
      out = pick(t, out, indices);
    } else {
      out = gather(t, out, indices, layout);
    }
  }
  if (!indices.added.empty()) out = t.reshape(out, with_added(out.dims(), indices, layout));
  out.weak = x.weak;
  return out;
}

Array update_array(Tracer& t, const Array& x, const Value& index, std::string_view method, const Value& value) {
  if (method == "subtract") return update_array(t, x, index, "add", t.unary("-", value));
  if (method == "divide" || method == "power") {
    const Array ones = t.full(x.type, int64_t{1});
    const Array factors = update_array(t, ones, index, "multiply", value);
    return *t.binary(method == "divide" ? "/" : "**", Value(x), Value(factors)).array();
  }
  const std::vector<Array> both = t.promoted_arrays({Value(x), value});
  const Indices indices = read_indices(t, x, index);
  const ResultLayout layout = layout_of(t, indices);
  tensor::Dims dims;
  for (size_t i = 0; i < layout.sliced.size(); ++i) {
    if (i == layout.broadcast_at) dims.insert(dims.end(), layout.broadcast.begin(), layout.broadcast.end());
    dims.push_back(indices.dims[layout.sliced[i]].range.count);
  }
  if (layout.broadcast_at >= layout.sliced.size())
    dims.insert(dims.end(), layout.broadcast.begin(), layout.broadcast.end());
  Array update = both[1];
  if (!indices.added.empty()) update = t.broadcast_to(update, with_added(dims, indices, layout));
  update = indices.added.empty() ? t.broadcast_to(update, dims) : t.reshape(update, dims);
  Array out = is_contiguous(indices, x) ? update_block(t, both[0], indices, method, update)
                                        : scatter(t, both[0], indices, layout, method, update);
  return t.convert(out, x.dtype(), x.weak);
}

Array take_rows(Tracer& t, const Array& x, const Array& indices, int64_t dim) {
  Indices all;
  for (int64_t d = 0; d < x.rank(); ++d) {
    DimIndex index;
    index.range = {0, x.dims()[static_cast<size_t>(d)], 1};
    if (d == dim) {
      index.kind = DimIndex::Kind::kArray;
      index.array = indices;
    }
    all.dims.push_back(std::move(index));
  }
  const ResultLayout layout = layout_of(t, all);
  Array out = layout.broadcast.empty() ? pick(t, x, all) : gather(t, x, all, layout);
  out.weak = x.weak;
  return out;
}

}  // namespace meshd::numpy
