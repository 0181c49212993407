// jnp.fft: discrete Fourier transforms over one axis or several.
#include <algorithm>
#include <cmath>

#include "service/numpy/functions/shared.h"

namespace meshd::numpy {
namespace {

struct Kind {
  std::string_view type;  ///< of stablehlo.fft
  bool inverse = false;
};

// Cut or padded with zeros to `size` along a dimension.
Array sized(Tracer& t, const Array& x, int64_t dim, int64_t size) {
  const int64_t own = x.dims()[static_cast<size_t>(dim)];
  if (own >= size) return t.slice_dim(x, dim, 0, size);
  std::vector<int64_t> none(x.dims().size(), 0);
  std::vector<int64_t> high = none;
  high[static_cast<size_t>(dim)] = size - own;
  return t.pad(x, t.full({x.dtype(), {}}, int64_t{0}), none, high);
}

Array transform_last(Tracer& t, const Array& x, const Kind& kind, int64_t length) {
  tensor::TensorType type = x.type;
  if (kind.type == "RFFT") type = {tensor::complex_of(x.dtype()), x.dims()};
  if (kind.type == "RFFT") type.dims.back() = length / 2 + 1;
  if (kind.type == "IRFFT") type = {tensor::part_of(x.dtype()), x.dims()};
  if (kind.type == "IRFFT") type.dims.back() = length;
  return t.op(
      "stablehlo.fft", {x},
      {{"fft_type", {ir::EnumAttr{"fft_type", std::string(kind.type)}}}, {"fft_length", ir::int_array_attr({length})}},
      type);
}

// One axis: moved to the end, transformed, moved back.
Array transform(Tracer& t, const Array& given, const Kind& kind, std::optional<int64_t> n, int64_t axis) {
  Array x = given;
  const bool is_double = x.dtype() == DType::kFloat64 || x.dtype() == DType::kComplex128;
  if (kind.type == "RFFT") {
    if (tensor::is_complex(x.dtype())) t.refuse("rfft takes real numbers; fft takes complex ones");
    x = t.convert(x, is_double ? DType::kFloat64 : DType::kFloat32);
  } else {
    x = t.convert(x, is_double ? DType::kComplex128 : DType::kComplex64);
  }
  const int64_t own = x.dims()[static_cast<size_t>(axis)];
  const int64_t length = n.value_or(kind.type == "IRFFT" ? std::max<int64_t>(1, 2 * (own - 1)) : own);
  if (length < 1) t.refuse("the length of a transform is at least 1");
  x = sized(t, x, axis, kind.type == "IRFFT" ? length / 2 + 1 : length);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  return t.transpose(transform_last(t, t.transpose(x, order), kind, length), order);
}

Array normalised(Tracer& t, const Array& x, const std::string& norm, bool inverse, double count) {
  if (norm != "backward" && norm != "ortho" && norm != "forward") t.refuse("norm is 'backward', 'ortho' or 'forward'");
  // The inverse of the op divides by the length already.
  double factor = 1;
  if (norm == "ortho") factor = inverse ? std::sqrt(count) : 1 / std::sqrt(count);
  if (norm == "forward") factor = inverse ? count : 1 / count;
  return factor == 1 ? x : t.multiply(x, t.with_number(x, factor));
}

std::string norm_of(Tracer& t, const Arguments& a) {
  return a["norm"].is_none() ? "backward" : t.to_text(a["norm"], "norm");
}

FunctionRow one_axis(std::string name, Kind kind) {
  return {"jnp.fft." + std::move(name), "a, n=None, axis=-1, norm=None",
          [kind](Tracer& t, const Arguments& a) -> Value {
            const Array x = t.array(a["a"]);
            if (x.rank() == 0) t.refuse("a transform takes an array of at least one dimension");
            const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
            const auto n = a["n"].is_none() ? std::nullopt : std::optional(t.to_int(a["n"], "n"));
            const Array out = transform(t, x, kind, n, axis);
            const bool halves = kind.type == "RFFT";
            const int64_t length =
                halves ? n.value_or(x.dims()[static_cast<size_t>(axis)]) : out.dims()[static_cast<size_t>(axis)];
            return normalised(t, out, norm_of(t, a), kind.inverse, static_cast<double>(length));
          }};
}

// Several axes: the real one, if any, is the last; first of a forward transform, last of an inverse one.
FunctionRow many_axes(std::string name, Kind kind, const char* axes) {
  const bool is_real = kind.type == "RFFT" || kind.type == "IRFFT";
  return {"jnp.fft." + std::move(name), std::string("a, s=None, axes=") + axes + ", norm=None",
          [kind, is_real](Tracer& t, const Arguments& a) -> Value {
            Array x = t.array(a["a"]);
            std::vector<int64_t> places;
            std::vector<int64_t> sizes;
            if (!a["s"].is_none()) sizes = t.to_ints(a["s"], "s");
            if (a["axes"].is_none()) {
              const int64_t count = sizes.empty() ? x.rank() : static_cast<int64_t>(sizes.size());
              for (int64_t i = 0; i < count; ++i) places.push_back(t.axis_of(x.rank() - count + i, x.rank()));
            } else {
              for (const int64_t axis : t.to_ints(a["axes"], "axes")) places.push_back(t.axis_of(axis, x.rank()));
            }
            if (!sizes.empty() && sizes.size() != places.size()) t.refuse("s has a size for each axis");
            if (places.empty()) t.refuse("a transform has at least one axis");
            double count = 1;
            const auto step = [&](size_t i, const Kind& with) {
              const auto at = static_cast<size_t>(places[i]);
              const int64_t before = x.dims()[at];
              x = transform(t, x, with, sizes.empty() ? std::nullopt : std::optional(sizes[i]), places[i]);
              count *= static_cast<double>(with.type == "RFFT" ? (sizes.empty() ? before : sizes[i]) : x.dims()[at]);
            };
            const Kind inner{kind.inverse ? "IFFT" : "FFT", kind.inverse};
            const size_t last = places.size() - 1;
            if (is_real && !kind.inverse) step(last, kind);
            for (size_t i = is_real ? last : last + 1; i-- > 0;) step(i, inner);
            if (is_real && kind.inverse) step(last, kind);
            return normalised(t, x, norm_of(t, a), kind.inverse, count);
          }};
}

Value shifted(Tracer& t, const Arguments& a, bool inverse) {
  const Array x = t.array(a["x"]);
  std::vector<Value> shifts;
  std::vector<Value> axes;
  for (const int64_t axis : t.to_axes(a["axes"], x.rank())) {
    const int64_t half = x.dims()[static_cast<size_t>(axis)] / 2;
    axes.emplace_back(axis);
    shifts.emplace_back(inverse ? -half : half);
  }
  return t.call(*t.globals().find("jnp.roll"), std::vector<Value>{x, tuple_of(shifts), tuple_of(axes)});
}

Value frequencies(Tracer& t, const Arguments& a, bool is_real) {
  const int64_t n = t.to_int(a["n"], "n");
  if (n < 1) t.refuse("n is at least 1");
  const double step = t.to_float(a["d"], "d") * static_cast<double>(n);
  const int64_t count = is_real ? n / 2 + 1 : n;
  const Array i = t.iota({DType::kFloat32, {count}}, 0);
  const Array whole =
      is_real ? i : t.select(t.compare("LT", i, t.with_number(i, (n + 1) / 2)), i, t.subtract(i, t.with_number(i, n)));
  return t.divide(whole, t.with_number(whole, step));
}

}  // namespace

std::vector<FunctionRow> fft_functions() {
  return {
      one_axis("fft", {"FFT", false}),
      one_axis("ifft", {"IFFT", true}),
      one_axis("rfft", {"RFFT", false}),
      one_axis("irfft", {"IRFFT", true}),
      many_axes("fft2", {"FFT", false}, "(-2, -1)"),
      many_axes("ifft2", {"IFFT", true}, "(-2, -1)"),
      many_axes("rfft2", {"RFFT", false}, "(-2, -1)"),
      many_axes("irfft2", {"IRFFT", true}, "(-2, -1)"),
      many_axes("fftn", {"FFT", false}, "None"),
      many_axes("ifftn", {"IFFT", true}, "None"),
      many_axes("rfftn", {"RFFT", false}, "None"),
      many_axes("irfftn", {"IRFFT", true}, "None"),
      {"jnp.fft.fftshift", "x, axes=None", [](Tracer& t, const Arguments& a) { return shifted(t, a, false); }},
      {"jnp.fft.ifftshift", "x, axes=None", [](Tracer& t, const Arguments& a) { return shifted(t, a, true); }},
      {"jnp.fft.fftfreq", "n, d=1.0", [](Tracer& t, const Arguments& a) { return frequencies(t, a, false); }},
      {"jnp.fft.rfftfreq", "n, d=1.0", [](Tracer& t, const Arguments& a) { return frequencies(t, a, true); }},
  };
}

}  // namespace meshd::numpy
