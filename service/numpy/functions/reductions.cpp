// Reductions and what accumulates: sum, mean, var, argmax, cumsum, median and so on.
#include <algorithm>
#include <limits>

#include "service/numpy/functions/shared.h"
#include "service/numpy/trace/arithmetic.h"

namespace meshd::numpy {
namespace {

// In which type sums are made: narrow integers as int32 or uint32, narrow floats as float32.
struct SumTypes {
  DType computed, result;
};

bool is_half(DType dtype) { return tensor::is_float(dtype) && tensor::row(dtype).bits < 32; }

DType promoted_integer(DType dtype) {
  if (dtype == DType::kBool) return DType::kInt32;
  if (!tensor::is_integer(dtype) || tensor::row(dtype).bits >= 32) return dtype;
  return tensor::is_signed_integer(dtype) ? DType::kInt32 : DType::kUint32;
}

SumTypes sum_types(DType own, const std::optional<DType>& asked) {
  const DType result = asked ? *asked : promoted_integer(own);
  return {is_half(result) ? DType::kFloat32 : result, result};
}

// where=mask: what the mask leaves out becomes `identity`.
Array masked(Tracer& t, const Array& x, const Value& mask, const Value& identity) {
  if (mask.is_none()) return x;
  return where(t, t.array(mask), Value(x), Value(t.full({x.dtype(), {}}, identity)));
}

Array with_initial(Tracer& t, Array out, const Value& initial,
                   const std::function<Array(const Array&, const Array&)>& fold) {
  if (initial.is_none()) return out;
  return fold(out, t.typed(initial, out.type));
}

Value sum_or_prod(Tracer& t, const Arguments& a, bool is_sum) {
  const Array x = t.array(a["a"]);
  const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
  const SumTypes types = sum_types(x.dtype(), t.to_dtype_or_none(a["dtype"]));
  const Value identity = int64_t{is_sum ? 0 : 1};
  const Array in = masked(t, t.convert(x, types.computed), a["where"], identity);
  Array out =
      is_sum ? t.reduce("stablehlo.add", in, axes, identity) : t.reduce("stablehlo.multiply", in, axes, identity);
  out = keep_dims(t, out, in.dims(), axes, t.to_bool(a["keepdims"], "keepdims"));
  out = t.convert(out, types.result, x.weak && types.result == x.dtype());
  return with_initial(t, out, a["initial"],
                      [&](const Array& p, const Array& q) { return is_sum ? t.add(p, q) : t.multiply(p, q); });
}

Value extreme(Tracer& t, const Arguments& a, bool is_max) {
  const Array x = t.array(a["a"]);
  if (tensor::is_complex(x.dtype())) t.unsupported("max and min of complex numbers");
  const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
  if (count_of(x, axes) == 0 && a["initial"].is_none()) t.refuse("max and min of no elements need 'initial'");
  if (!a["where"].is_none() && a["initial"].is_none()) t.refuse("max and min with 'where' need 'initial'");
  const Array in = masked(t, x, a["where"], is_max ? t.lowest(x.dtype()) : t.highest(x.dtype()));
  const bool keep = t.to_bool(a["keepdims"], "keepdims");
  Array out = is_max ? max_of(t, in, axes, keep) : min_of(t, in, axes, keep);
  out.weak = x.weak;
  return with_initial(t, out, a["initial"],
                      [&](const Array& p, const Array& q) { return is_max ? t.maximum(p, q) : t.minimum(p, q); });
}

Value all_or_any(Tracer& t, const Arguments& a, bool is_all) {
  const Array x = t.convert(t.array(a["a"]), DType::kBool);
  const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
  const Array in = masked(t, x, a["where"], is_all);
  const Array out = is_all ? t.reduce("stablehlo.and", in, axes, true) : t.reduce("stablehlo.or", in, axes, false);
  return keep_dims(t, out, in.dims(), axes, t.to_bool(a["keepdims"], "keepdims"));
}

// Integers are averaged as float32.
DType mean_type(DType own, const std::optional<DType>& asked) {
  if (asked) return *asked;
  return tensor::is_integer(own) || own == DType::kBool ? DType::kFloat32 : own;
}

Array mean_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep, const Value& mask) {
  const DType computed = is_half(x.dtype()) ? DType::kFloat32 : x.dtype();
  const Array in = masked(t, t.convert(x, computed), mask, int64_t{0});
  const Array sum = sum_of(t, in, axes, keep);
  if (mask.is_none())
    return t.convert(t.divide(sum, t.with_number(sum, static_cast<double>(count_of(x, axes)))), x.dtype());
  const Array counted =
      sum_of(t, t.broadcast_to(t.convert(t.convert(t.array(mask), DType::kBool), computed), x.dims()), axes, keep);
  return t.convert(t.divide(sum, counted), x.dtype());
}

Value mean(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["a"]);
  const DType dtype = mean_type(x.dtype(), t.to_dtype_or_none(a["dtype"]));
  Array out =
      mean_of(t, t.convert(x, dtype), t.to_axes(a["axis"], x.rank()), t.to_bool(a["keepdims"], "keepdims"), a["where"]);
  out.weak = x.weak && dtype == x.dtype();
  return out;
}

Array variance(Tracer& t, const Arguments& a) {
  const Array given = t.array(a["a"]);
  const std::vector<int64_t> axes = t.to_axes(a["axis"], given.rank());
  const DType result = mean_type(given.dtype(), t.to_dtype_or_none(a["dtype"]));
  const DType computed = is_half(result) ? DType::kFloat32 : result;
  const Array x = t.convert(given, computed);
  if (!a["where"].is_none()) t.unsupported("'where' of var and std");
  const Array center = mean_of(t, x, axes, true, None{});
  Array centered = t.subtract(x, t.broadcast_to(center, x.dims()));
  if (tensor::is_complex(computed)) {
    const Array re = t.real(centered);
    const Array im = t.imag(centered);
    centered = t.add(t.multiply(re, re), t.multiply(im, im));
  } else {
    centered = t.multiply(centered, centered);
  }
  const Array sum = sum_of(t, centered, axes, t.to_bool(a["keepdims"], "keepdims"));
  const double count = static_cast<double>(count_of(x, axes)) - t.to_float(a["ddof"], "ddof");
  Array out = t.divide(sum, t.with_number(sum, count));
  if (count <= 0) out = t.full(out.type, std::numeric_limits<double>::quiet_NaN());
  out = t.convert(out, tensor::is_complex(result) ? out.dtype() : result);
  out.weak = given.weak && out.dtype() == given.dtype();
  return out;
}

Value arg_extreme(Tracer& t, const Arguments& a, std::string_view direction) {
  Array x = t.array(a["a"]);
  const bool keep = t.to_bool(a["keepdims"], "keepdims");
  if (a["axis"].is_none()) {
    const tensor::Dims dims = x.dims();
    x = t.reshape(x, {tensor::element_count(x.type)});
    const Array out = arg_reduce(t, x, 0, direction);
    return keep ? t.reshape(out, tensor::Dims(dims.size(), 1)) : out;
  }
  const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  return keep_dims(t, arg_reduce(t, x, axis, direction), x.dims(), {axis}, keep);
}

Value cumulative(Tracer& t, const Arguments& a, bool is_sum) {
  Array x = t.array(a["a"]);
  if (a["axis"].is_none()) x = t.reshape(x, {tensor::element_count(x.type)});
  const int64_t axis = a["axis"].is_none() ? 0 : t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  const auto asked = t.to_dtype_or_none(a["dtype"]);
  if (asked) {
    x = t.convert(x, *asked);
  } else if (x.dtype() == DType::kBool) {
    x = t.convert(x, DType::kInt32);
  }
  return is_sum ? t.cumulate("stablehlo.add", x, axis, int64_t{0}, false)
                : t.cumulate("stablehlo.multiply", x, axis, int64_t{1}, false);
}

// As JAX, it has the derivatives of the parallel scan, in which equal elements share a cotangent pair by pair.
Value cumulative_extreme(Tracer& t, const Arguments& a, bool is_max) {
  const Array x = t.array(a["operand"]);
  const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
  const bool reversed = t.to_bool(a["reverse"], "reverse");
  const Array out = t.cumulate(is_max ? "stablehlo.maximum" : "stablehlo.minimum", x, axis,
                               is_max ? t.lowest(x.dtype()) : t.highest(x.dtype()), reversed);
  if (!tensor::is_float(x.dtype())) return out;
  const Value scan = t.call(*t.globals().find("lax.associative_scan"),
                            CallArguments{{*t.globals().find(is_max ? "jnp.maximum" : "jnp.minimum"), x},
                                          {{"axis", axis}, {"reverse", reversed}}});
  return t.differentiated_as(out, {*scan.array()});
}

// Of sorted elements along `axis`, the one at fraction q of the way, by linear interpolation.
Value quantile(Tracer& t, const Value& array, const Value& at, const Value& axis_value, bool keep, double scale) {
  Array x = t.inexact(array);
  std::vector<int64_t> axes = t.to_axes(axis_value, x.rank());
  const tensor::Dims before = x.dims();
  // One dimension behind the others.
  std::vector<int64_t> order;
  tensor::Dims kept;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
    order.push_back(i);
    kept.push_back(before[static_cast<size_t>(i)]);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  const int64_t count = count_of(x, axes);
  if (count == 0) t.refuse("a quantile of no elements");
  tensor::Dims flat = kept;
  flat.push_back(count);
  x = t.reshape(t.transpose(x, order), flat);
  const auto last = static_cast<int64_t>(kept.size());
  const Array any_nan = t.reduce("stablehlo.or", t.compare("NE", x, x), {last}, false);
  const Array sorted = t.sort({x}, last, 1)[0];
  const Array q = t.inexact(at);
  const Array flat_q = t.convert(t.reshape(q, {tensor::element_count(q.type)}), x.dtype());
  std::vector<Array> parts;
  const Array place =
      t.multiply(t.multiply(flat_q, t.full_like(flat_q, scale)), t.full_like(flat_q, static_cast<double>(count - 1)));
  const Array low = t.op("stablehlo.floor", {place});
  const Array high = t.op("stablehlo.ceil", {place});
  const Array high_weight = t.subtract(place, low);
  const Array low_weight = t.subtract(t.full_like(place, int64_t{1}), high_weight);
  for (int64_t i = 0; i < flat_q.dims()[0]; ++i) {
    const auto pick = [&](const Array& from) { return t.reshape(t.slice_dim(from, 0, i, i + 1), {}); };
    const auto element = [&](const Array& index) {
      std::vector<Array> starts(kept.size(), t.full({DType::kInt32, {}}, int64_t{0}));
      const Array bounded =
          t.maximum(t.minimum(pick(index), t.full({index.dtype(), {}}, static_cast<double>(count - 1))),
                    t.full({index.dtype(), {}}, 0.0));
      starts.push_back(t.convert(bounded, DType::kInt32));
      std::vector<int64_t> sizes = flat;
      sizes.back() = 1;
      return t.reshape(t.dynamic_slice(sorted, starts, sizes), kept);
    };
    const auto weight = [&](const Array& from) { return t.broadcast_to(pick(from), kept); };
    Array made = t.add(t.multiply(element(low), weight(low_weight)), t.multiply(element(high), weight(high_weight)));
    made = t.select(any_nan, t.full_like(made, std::numeric_limits<double>::quiet_NaN()), made);
    made = keep_dims(t, made, before, axes, keep);
    tensor::Dims row = made.dims();
    row.insert(row.begin(), 1);
    parts.push_back(t.reshape(made, row));
  }
  Array out = t.concatenate(parts, 0);
  tensor::Dims dims = q.dims();
  dims.insert(dims.end(), out.dims().begin() + 1, out.dims().end());
  return t.reshape(out, dims);
}

constexpr const char* kFold = "a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None";
constexpr const char* kExtreme = "a, axis=None, out=None, keepdims=False, initial=None, where=None";
constexpr const char* kArg = "a, axis=None, out=None, keepdims=False";

// NaN counts as `instead`.
FunctionRow ignoring_nan(std::string path, double instead, bool is_max) {
  return {std::move(path), "a, axis=None, keepdims=False", [instead, is_max](Tracer& t, const Arguments& a) -> Value {
            const Array x = t.array(a["a"]);
            const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
            const bool keep = t.to_bool(a["keepdims"], "keepdims");
            if (!tensor::is_float(x.dtype())) return is_max ? max_of(t, x, axes, keep) : min_of(t, x, axes, keep);
            const Array is_nan = t.compare("NE", x, x);
            const Array clean = t.select(is_nan, t.full_like(x, instead), x);
            const Array out = is_max ? max_of(t, clean, axes, keep) : min_of(t, clean, axes, keep);
            const Array only_nan = keep_dims(t, t.reduce("stablehlo.and", is_nan, axes, true), x.dims(), axes, keep);
            return t.select(only_nan, t.full_like(out, std::numeric_limits<double>::quiet_NaN()), out);
          }};
}

}  // namespace

std::vector<FunctionRow> reduction_functions() {
  return {
      {"jnp.sum", kFold, [](Tracer& t, const Arguments& a) { return sum_or_prod(t, a, true); }},
      {"jnp.prod", kFold, [](Tracer& t, const Arguments& a) { return sum_or_prod(t, a, false); }},
      {"jnp.max", kExtreme, [](Tracer& t, const Arguments& a) { return extreme(t, a, true); }},
      {"jnp.min", kExtreme, [](Tracer& t, const Arguments& a) { return extreme(t, a, false); }},
      {"jnp.amax", kExtreme, [](Tracer& t, const Arguments& a) { return extreme(t, a, true); }},
      {"jnp.amin", kExtreme, [](Tracer& t, const Arguments& a) { return extreme(t, a, false); }},
      {"jnp.all", "a, axis=None, out=None, keepdims=False, where=None",
       [](Tracer& t, const Arguments& a) { return all_or_any(t, a, true); }},
      {"jnp.any", "a, axis=None, out=None, keepdims=False, where=None",
       [](Tracer& t, const Arguments& a) { return all_or_any(t, a, false); }},
      {"jnp.mean", "a, axis=None, dtype=None, out=None, keepdims=False, where=None", mean},
      {"jnp.var", "a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None",
       [](Tracer& t, const Arguments& a) -> Value { return variance(t, a); }},
      {"jnp.std", "a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None",
       [](Tracer& t, const Arguments& a) -> Value { return one(t, "stablehlo.sqrt", variance(t, a)); }},
      {"jnp.argmax", kArg, [](Tracer& t, const Arguments& a) { return arg_extreme(t, a, "GT"); }},
      {"jnp.argmin", kArg, [](Tracer& t, const Arguments& a) { return arg_extreme(t, a, "LT"); }},
      {"jnp.ptp", "a, axis=None, out=None, keepdims=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["a"]);
         const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
         const bool keep = t.to_bool(a["keepdims"], "keepdims");
         return t.subtract(max_of(t, x, axes, keep), min_of(t, x, axes, keep));
       }},
      {"jnp.cumsum", "a, axis=None, dtype=None", [](Tracer& t, const Arguments& a) { return cumulative(t, a, true); }},
      {"jnp.cumprod", "a, axis=None, dtype=None",
       [](Tracer& t, const Arguments& a) { return cumulative(t, a, false); }},
      {"lax.cumsum", "operand, axis=0, reverse=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["operand"]);
         return t.cumulate("stablehlo.add", x, t.axis_of(t.to_int(a["axis"], "axis"), x.rank()), int64_t{0},
                           t.to_bool(a["reverse"], "reverse"));
       }},
      {"lax.cummax", "operand, axis=0, reverse=False",
       [](Tracer& t, const Arguments& a) -> Value { return cumulative_extreme(t, a, true); }},
      {"lax.cummin", "operand, axis=0, reverse=False",
       [](Tracer& t, const Arguments& a) -> Value { return cumulative_extreme(t, a, false); }},
      {"jnp.median", "a, axis=None, out=None, overwrite_input=False, keepdims=False",
       [](Tracer& t, const Arguments& a) {
         return quantile(t, a["a"], 0.5, a["axis"], t.to_bool(a["keepdims"], "keepdims"), 1);
       }},
      {"jnp.quantile", "a, q, axis=None, keepdims=False",
       [](Tracer& t, const Arguments& a) {
         return quantile(t, a["a"], a["q"], a["axis"], t.to_bool(a["keepdims"], "keepdims"), 1);
       }},
      {"jnp.percentile", "a, q, axis=None, keepdims=False",
       [](Tracer& t, const Arguments& a) {
         return quantile(t, a["a"], true_divide(t, a["q"], 100.0), a["axis"], t.to_bool(a["keepdims"], "keepdims"), 1);
       }},
      {"jnp.count_nonzero", "a, axis=None, keepdims=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.convert(t.convert(t.array(a["a"]), DType::kBool), DType::kInt32);
         return sum_of(t, x, t.to_axes(a["axis"], x.rank()), t.to_bool(a["keepdims"], "keepdims"));
       }},
      {"jnp.nansum", "a, axis=None, keepdims=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.array(a["a"]);
         const Array clean = tensor::is_float(x.dtype()) || tensor::is_complex(x.dtype())
                                 ? t.select(t.compare("NE", x, x), t.full_like(x, int64_t{0}), x)
                                 : t.convert(x, promoted_integer(x.dtype()));
         return sum_of(t, clean, t.to_axes(a["axis"], x.rank()), t.to_bool(a["keepdims"], "keepdims"));
       }},
      {"jnp.nanmean", "a, axis=None, keepdims=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.inexact(a["a"]);
         const Array is_number = t.compare("EQ", x, x);
         const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
         const bool keep = t.to_bool(a["keepdims"], "keepdims");
         const Array sum = sum_of(t, t.select(is_number, x, t.full_like(x, int64_t{0})), axes, keep);
         return t.divide(sum, sum_of(t, t.convert(is_number, x.dtype()), axes, keep));
       }},
      ignoring_nan("jnp.nanmax", -std::numeric_limits<double>::infinity(), true),
      ignoring_nan("jnp.nanmin", std::numeric_limits<double>::infinity(), false),
      {"jnp.average", "a, axis=None, weights=None, keepdims=False",
       [](Tracer& t, const Arguments& a) -> Value {
         if (a["weights"].is_none()) {
           const Array x = t.inexact(a["a"]);
           return mean_of(t, x, t.to_axes(a["axis"], x.rank()), t.to_bool(a["keepdims"], "keepdims"), None{});
         }
         Array x = t.inexact_arrays({a["a"], t.full({t.type_of(a["weights"]).dtype, {}}, int64_t{0})})[0];
         Array w = t.convert(t.array(a["weights"]), x.dtype());
         const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
         if (w.dims() != x.dims()) {
           if (axes.size() != 1 || w.rank() != 1 || w.dims()[0] != x.dims()[static_cast<size_t>(axes[0])])
             t.refuse("weights have the shape of the array, or one dimension and the size of the axis");
           w = t.broadcast_in_dim(w, x.dims(), {axes[0]});
         }
         const bool keep = t.to_bool(a["keepdims"], "keepdims");
         return t.divide(sum_of(t, t.multiply(x, w), axes, keep), sum_of(t, w, axes, keep));
       }},
      {"special.logsumexp", "a, axis=None, keepdims=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.inexact(a["a"]);
         return logsumexp_of(t, x, t.to_axes(a["axis"], x.rank()), t.to_bool(a["keepdims"], "keepdims"));
       }},
  };
}

}  // namespace meshd::numpy
