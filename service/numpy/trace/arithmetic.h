// Arithmetic of arrays that operators and functions share, composed as jax.numpy composes it.
#pragma once

#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

/// x / y of floats; integers become float32 first.
Array true_divide(Tracer& t, const Value& x, const Value& y);
/// x // y, rounded down; and the remainder with the sign of y.
Array floor_divide(Tracer& t, const Value& x, const Value& y);
Array remainder(Tracer& t, const Value& x, const Value& y);
/// x ** y: products where y is a static int or both are integers, else stablehlo.power.
Array power(Tracer& t, const Value& x, const Value& y);
/// x @ y as jnp.matmul.
Array matmul(Tracer& t, const Value& x, const Value& y);
/// One op on promoted and broadcast operands.
Array elementwise(Tracer& t, std::string_view op, const Value& x, const Value& y);

}  // namespace meshd::numpy
