// Static arguments: values that are constants of the program. Another value is another program to the stages and caches
// behind; what depends on it alone is computed when it is compiled. JAX: static_argnums; behaviours S27 to S31, P8.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/tensor/dense_value.h"

namespace meshd::compile {

/// The program without these arguments (by token-free position), each a constant in its place. Its id says the values.
/// Throws invalid_argument where a value has not the type that the program takes.
ParsedRef with_static(const ParsedRef& parsed, const std::map<size_t, tensor::DenseValue>& values);

}  // namespace meshd::compile
