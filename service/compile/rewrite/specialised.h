// A program with dynamic dimensions, for arguments of known shapes (Compiler::specialise caches it). Its plan depends
// on them, so it is a program of its own to the stages and caches behind.
#pragma once

#include <string>
#include <vector>

#include "service/compile/pipeline.h"

namespace meshd::compile {

/// True when an argument of type `given` is accepted for the declared type `declared`: same element type and rank, and
/// each dimension equal or dynamic.
bool fits(const tensor::TensorType& given, const tensor::TensorType& declared);

/// True when an argument has a dynamic dimension, so that a run needs a program for its types.
bool has_dynamic_arguments(const ParsedProgram& parsed);

/// The id of specialised(parsed, arguments): the program's, and the types.
std::string specialised_id(const ParsedProgram& parsed, const std::vector<tensor::TensorType>& arguments);

/// The program for arguments of these types (without tokens, as many as it takes, each fits); `id` is specialised_id()
/// of them. Throws invalid_argument where a shape assertion of the program does not hold, unsupported_type where a
/// shape depends on data.
ParsedRef specialised(std::string id, const ParsedProgram& parsed, const std::vector<tensor::TensorType>& arguments);

}  // namespace meshd::compile
