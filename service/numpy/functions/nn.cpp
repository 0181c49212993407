// jax.nn: activations, softmax, one_hot.
#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "service/numpy/functions/shared.h"

namespace meshd::numpy {
namespace {

using Activation = std::function<Array(Tracer&, const Array&)>;

FunctionRow activation_row(std::string path, Activation run) {
  return {std::move(path), "x",
          [run = std::move(run)](Tracer& t, const Arguments& a) -> Value { return run(t, t.inexact(a["x"])); }};
}

Array number(Tracer& t, const Array& x, double value) { return t.with_number(x, value); }
Array is_positive(Tracer& t, const Array& x) { return t.compare("GT", x, number(t, x, 0)); }

// x between two numbers, with x's slope at the bounds themselves. Not a maximum and a minimum, whose derivatives are a
// half there.
Array bounded(Tracer& t, const Array& x, int64_t least, int64_t most) {
  const Array low = t.full_like(x, least);
  const Array high = t.full_like(x, most);
  return t.select(t.compare("LT", x, low), low, t.select(t.compare("GT", x, high), high, x));
}

// `value`, with x's slope where `where` holds, else none.
Array sloped(Tracer& t, const Array& value, const Array& where, const Array& x) {
  return t.differentiated_as(value, {t.select(where, x, t.full_like(x, int64_t{0}))});
}

Array relu(Tracer& t, const Array& x) {
  return sloped(t, t.maximum(x, t.full_like(x, int64_t{0})), is_positive(t, x), x);
}

Array relu6(Tracer& t, const Array& x) {
  const Array six = number(t, x, 6);
  const Array inside = t.logical_and(is_positive(t, x), t.compare("LT", x, six));
  return sloped(t, t.minimum(t.maximum(x, number(t, x, 0)), six), inside, x);
}

Array sigmoid(Tracer& t, const Array& x) { return t.op("stablehlo.logistic", {x}); }

// log(1 + exp(x)) without overflow.
Array softplus(Tracer& t, const Array& x) {
  return *t.call(*t.globals().find("jnp.logaddexp"), std::vector<Value>{x, number(t, x, 0)}).array();
}

Array elu(Tracer& t, const Array& x, const Array& alpha) {
  const Array safe = t.select(is_positive(t, x), number(t, x, 0), x);
  return t.select(is_positive(t, x), x, t.multiply(alpha, t.op("stablehlo.exponential_minus_one", {safe})));
}

Value softmax(Tracer& t, const Arguments& a) {
  const Array x = t.inexact(a["x"]);
  const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
  const Array shifted = t.subtract(x, t.broadcast_to(max_of(t, x, axes, true), x.dims()));
  const Array unnormalised = one(t, "stablehlo.exponential", shifted);
  return t.divide(unnormalised, t.broadcast_to(sum_of(t, unnormalised, axes, true), x.dims()));
}

Value log_softmax(Tracer& t, const Arguments& a) {
  const Array x = t.inexact(a["x"]);
  const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
  const Array shifted = t.subtract(x, t.broadcast_to(max_of(t, x, axes, true), x.dims()));
  const Array sum = sum_of(t, one(t, "stablehlo.exponential", shifted), axes, true);
  return t.subtract(shifted, t.broadcast_to(one(t, "stablehlo.log", sum), x.dims()));
}

Array gelu(Tracer& t, const Array& x, bool approximate) {
  if (!approximate) {
    const Array inner = t.op("chlo.erfc", {t.multiply(t.negate(x), number(t, x, std::sqrt(0.5)))});
    return t.multiply(number(t, x, 0.5), t.multiply(x, inner));
  }
  const Array cubed = t.integer_pow(x, 3);
  const Array inner =
      t.multiply(number(t, x, std::sqrt(2 / std::numbers::pi)), t.add(x, t.multiply(number(t, x, 0.044715), cubed)));
  const Array cdf = t.multiply(number(t, x, 0.5), t.add(number(t, x, 1), t.op("stablehlo.tanh", {inner})));
  return t.multiply(x, cdf);
}

Value one_hot(Tracer& t, const Arguments& a) {
  const Array x = t.array(a["x"]);
  const int64_t classes = t.to_int(a["num_classes"], "num_classes");
  const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), x.rank() + 1);
  const DType dtype = t.to_dtype_or_none(a["dtype"]).value_or(DType::kFloat32);
  tensor::Dims dims = x.dims();
  dims.insert(dims.begin() + axis, classes);
  std::vector<int64_t> into;
  for (int64_t i = 0; i < x.rank(); ++i) into.push_back(i < axis ? i : i + 1);
  return t.convert(t.compare("EQ", t.broadcast_in_dim(x, dims, into), t.iota({x.dtype(), dims}, axis)), dtype);
}

Value standardize(Tracer& t, const Arguments& a) {
  const Array x = t.inexact(a["x"]);
  const std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
  const auto mean = [&](const Array& of) {
    const Array sum = sum_of(t, of, axes, true);
    return t.divide(sum, number(t, sum, static_cast<double>(count_of(x, axes))));
  };
  const Array center = mean(x);
  const Array variance = t.subtract(mean(t.multiply(x, x)), t.multiply(center, center));
  const Array scale = t.op("stablehlo.rsqrt", {t.add(variance, t.typed(a["epsilon"], variance.type))});
  return t.multiply(t.subtract(x, t.broadcast_to(center, x.dims())), t.broadcast_to(scale, x.dims()));
}

}  // namespace

std::vector<FunctionRow> nn_functions() {
  constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
  constexpr double kSeluScale = 1.0507009873554804934193349852946;
  return {
      {"nn.relu", "x", [](Tracer& t, const Arguments& a) -> Value { return relu(t, t.array(a["x"])); }},
      activation_row("nn.relu6", relu6),
      activation_row("nn.sigmoid", sigmoid),
      activation_row("nn.log_sigmoid", [](Tracer& t, const Array& x) { return t.negate(softplus(t, t.negate(x))); }),
      activation_row("nn.softplus", softplus),
      activation_row("nn.silu", [](Tracer& t, const Array& x) { return t.multiply(x, sigmoid(t, x)); }),
      activation_row("nn.swish", [](Tracer& t, const Array& x) { return t.multiply(x, sigmoid(t, x)); }),
      activation_row("nn.mish",
                     [](Tracer& t, const Array& x) { return t.multiply(x, t.op("stablehlo.tanh", {softplus(t, x)})); }),
      activation_row("nn.soft_sign",
                     [](Tracer& t, const Array& x) { return t.divide(x, t.add(abs_of(t, x), number(t, x, 1))); }),
      activation_row("nn.tanh", [](Tracer& t, const Array& x) { return t.op("stablehlo.tanh", {x}); }),
      {"nn.hard_tanh", "x", [](Tracer& t, const Arguments& a) -> Value { return bounded(t, t.array(a["x"]), -1, 1); }},
      activation_row(
          "nn.hard_sigmoid",
          [](Tracer& t, const Array& x) { return t.divide(relu6(t, t.add(x, number(t, x, 3))), number(t, x, 6)); }),
      {"nn.leaky_relu", "x, negative_slope=0.01",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.inexact(a["x"]);
         return t.select(t.compare("GE", x, number(t, x, 0)), x, t.multiply(t.typed(a["negative_slope"], x.type), x));
       }},
      {"nn.elu", "x, alpha=1.0",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.inexact(a["x"]);
         return elu(t, x, t.typed(a["alpha"], x.type));
       }},
      {"nn.celu", "x, alpha=1.0",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.inexact(a["x"]);
         const Array alpha = t.typed(a["alpha"], x.type);
         const Array low = t.multiply(
             alpha, t.op("stablehlo.exponential_minus_one", {t.divide(t.minimum(x, number(t, x, 0)), alpha)}));
         return t.add(t.maximum(x, number(t, x, 0)), low);
       }},
      activation_row("nn.selu",
                     [](Tracer& t, const Array& x) {
                       return t.multiply(number(t, x, kSeluScale), elu(t, x, number(t, x, kSeluAlpha)));
                     }),
      {"nn.gelu", "x, approximate=True",
       [](Tracer& t, const Arguments& a) -> Value {
         return gelu(t, t.inexact(a["x"]), t.to_bool(a["approximate"], "approximate"));
       }},
      {"nn.glu", "x, axis=-1",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.inexact(a["x"]);
         const int64_t axis = t.axis_of(t.to_int(a["axis"], "axis"), x.rank());
         const int64_t size = x.dims()[static_cast<size_t>(axis)];
         if (size % 2 != 0) t.refuse(fmt::format("the axis of glu has an even size, got {}", size));
         return t.multiply(t.slice_dim(x, axis, 0, size / 2), sigmoid(t, t.slice_dim(x, axis, size / 2, size)));
       }},
      {"nn.softmax", "x, axis=-1", softmax},
      {"nn.log_softmax", "x, axis=-1", log_softmax},
      {"nn.logsumexp", "a, axis=None, keepdims=False",
       [](Tracer& t, const Arguments& a) -> Value {
         const Array x = t.inexact(a["a"]);
         return logsumexp_of(t, x, t.to_axes(a["axis"], x.rank()), t.to_bool(a["keepdims"], "keepdims"));
       }},
      {"nn.one_hot", "x, num_classes, dtype=None, axis=-1", one_hot},
      {"nn.standardize", "x, axis=-1, epsilon=1e-05", standardize},
  };
}

}  // namespace meshd::numpy
