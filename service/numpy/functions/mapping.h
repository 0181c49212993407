// jax.vmap of functions of a program.
#pragma once

#include <optional>

#include "service/numpy/trace/tracer.h"

namespace meshd::numpy {

/// How vmap goes over its function: axes are ints, None, or trees of them like the arguments and results.
struct Mapping {
  Value in_axes = int64_t{0};
  Value out_axes = int64_t{0};
  std::optional<int64_t> axis_size = std::nullopt;
};

/// The function over an axis of its arguments; arguments with names go over their first one. The function is traced for
/// one row and rewritten for all (program/batching); where an op has no rule for that, or the program logs, it is
/// traced for each of a few rows, or runs in a loop over more.
Value mapped_call(Tracer& t, const Value& function, const Mapping& mapping, const CallArguments& given);

}  // namespace meshd::numpy
