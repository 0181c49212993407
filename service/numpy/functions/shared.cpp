#include "service/numpy/functions/shared.h"

#include <algorithm>

namespace meshd::numpy {

Array keep_dims(Tracer& t, const Array& reduced, const tensor::Dims& before, const std::vector<int64_t>& axes,
                bool keep) {
  if (!keep) return reduced;
  tensor::Dims dims = before;
  for (const int64_t axis : axes) dims[static_cast<size_t>(axis)] = 1;
  return t.reshape(reduced, std::move(dims));
}

Array sum_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep) {
  return keep_dims(t, t.reduce("stablehlo.add", x, axes, int64_t{0}), x.dims(), axes, keep);
}
Array max_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep) {
  return keep_dims(t, t.reduce("stablehlo.maximum", x, axes, t.lowest(x.dtype())), x.dims(), axes, keep);
}
Array min_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep) {
  return keep_dims(t, t.reduce("stablehlo.minimum", x, axes, t.highest(x.dtype())), x.dims(), axes, keep);
}

int64_t count_of(const Array& x, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= x.dims()[static_cast<size_t>(axis)];
  return count;
}

Array abs_of(Tracer& t, const Array& x) {
  if (x.dtype() == DType::kBool || (tensor::is_integer(x.dtype()) && !tensor::is_signed_integer(x.dtype()))) return x;
  return t.op("stablehlo.abs", {x});
}

Array where(Tracer& t, const Array& mask, const Value& a, const Value& b) {
  std::vector<Array> both = t.promoted_arrays({a, b});
  const bool weak = both[0].weak && both[1].weak;
  const tensor::Dims dims = t.broadcast_dims({mask.dims(), both[0].dims(), both[1].dims()});
  for (Array& each : both) each = t.broadcast_to(each, dims);
  Array out = t.select(t.broadcast_to(t.convert(mask, DType::kBool), dims), both[0], both[1]);
  out.weak = weak;
  return out;
}

Array arg_reduce(Tracer& t, const Array& x, int64_t dim, std::string_view direction) {
  if (x.dims()[static_cast<size_t>(dim)] == 0) t.refuse("there is no largest or smallest of no elements");
  Array values = x.dtype() == DType::kBool ? t.convert(x, DType::kInt32) : x;
  if (tensor::is_complex(values.dtype())) t.unsupported("argmax and argmin of complex numbers");
  const Array places = t.iota({DType::kInt32, x.dims()}, dim);
  const Value identity = direction == "GT" ? t.lowest(values.dtype()) : t.highest(values.dtype());
  return t.reduce({values, places}, {identity, int64_t{0}}, {dim}, [&](std::vector<Array> a, std::vector<Array> b) {
    const Array wins = t.logical_or(t.compare(direction, a[0], b[0]), t.compare("NE", a[0], a[0]));
    const Array is_first = t.logical_and(t.compare("EQ", a[0], b[0]), t.compare("LT", a[1], b[1]));
    return std::vector<Array>{t.select(wins, a[0], b[0]), t.select(t.logical_or(wins, is_first), a[1], b[1])};
  })[1];
}

Array logsumexp_of(Tracer& t, const Array& x, const std::vector<int64_t>& axes, bool keep) {
  const Array largest = max_of(t, tensor::is_complex(x.dtype()) ? t.real(x) : x, axes, true);
  const Array zero = t.full_like(largest, int64_t{0});
  const Array shift = t.convert(t.select(t.op("stablehlo.is_finite", {largest}), largest, zero), x.dtype());
  const Array sum =
      sum_of(t, one(t, "stablehlo.exponential", t.subtract(x, t.broadcast_to(shift, x.dims()))), axes, true);
  const Array out = t.add(one(t, "stablehlo.log", sum), shift);
  if (keep) return out;
  tensor::Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) dims.push_back(x.dims()[static_cast<size_t>(i)]);
  }
  return t.reshape(out, std::move(dims));
}

}  // namespace meshd::numpy
