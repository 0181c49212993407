// Derivatives of functions of a program.
#pragma once

#include <vector>

#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

/// jax.grad and jax.value_and_grad of a scalar function at `given`, with respect to the positional arguments `argnums`
/// (`one_argnum`: the gradient is not put into a tuple). Throws invalid_program where JAX raises, unsupported_op by op
/// and line where there is no derivative.
Value differentiated(Tracer& t, const Value& function, const std::vector<int64_t>& argnums, bool one_argnum,
                     bool has_aux, bool with_value, const CallArguments& given);

}  // namespace meshd::numpy
