// Arguments of programs of NumPy syntax: JSON values that say no dtype have NumPy's, with JAX's 32 bits; lists are
// arrays, other objects are dicts of arguments, and static arguments are Python's values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/json/schema.h"
#include "service/numpy/numpy.h"

namespace meshd::api {

/// The type of bare numbers, booleans and nested lists: bool, int32 or float32. Notes a mistake where lists are uneven,
/// kinds are mixed, or a whole number does not fit.
std::optional<tensor::TensorType> inferred_type(const Json& json, const std::string& pointer, core::Diagnostics& wrong);

/// Takes an argument that is an array: `expected` is its type where the JSON does not say it. Gives its type, or
/// nothing where a mistake was noted.
using TakeArray = std::function<std::optional<tensor::TensorType>(const Json& json, const tensor::TensorType* expected,
                                                                  const std::string& pointer)>;

/// The arguments of a run in the fields `arguments`, `keywords` and `static`, any of which may be null. `take` is
/// called for each array, in the order in which the traced program takes them.
numpy::Inputs read_numpy_arguments(const numpy::Program& program, const Json* arguments, const Json* keywords,
                                   const Json* statics, const TakeArray& take, core::Diagnostics& wrong);

}  // namespace meshd::api
