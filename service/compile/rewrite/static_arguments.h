// Static arguments: values that are constants of the program. Another value is another program to the stages and caches
// behind; what depends on it alone is computed when it is compiled. JAX: static_argnums; behaviours S27 to S31, P8.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/tensor/dense_value.h"

namespace meshd::compile {

/// The id of with_static(parsed, values): the program's, and a digest of positions, types and values. Throws
/// invalid_argument where a value has not the declared type.
std::string static_id(const ParsedProgram& parsed, const std::map<size_t, tensor::DenseValue>& values);

/// The program with these arguments (by token-free position) replaced by constants; `id` is static_id() of them, which
/// has checked their types. Compiler::with_static caches it.
ParsedRef with_static(std::string id, const ParsedProgram& parsed, const std::map<size_t, tensor::DenseValue>& values);

}  // namespace meshd::compile
