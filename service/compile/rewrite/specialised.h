// A program with dynamic dimensions, for arguments of known shapes. Its plan depends on them, so it is a program of its
// own to the stages and caches behind.
#pragma once

#include <vector>

#include "service/compile/pipeline.h"

namespace meshd::compile {

/// True when an argument of type `given` may go where the program says `declared`: same element type and rank, and each
/// dimension equal or dynamic.
bool fits(const tensor::TensorType& given, const tensor::TensorType& declared);

/// The program for arguments of these types (without tokens, as many as it takes, each fits); the same program where no
/// argument has a dynamic dimension. Throws invalid_argument where a shape assertion of the program does not hold,
/// unsupported_type where a shape depends on data.
ParsedRef specialised(const ParsedRef& parsed, const std::vector<tensor::TensorType>& arguments);

}  // namespace meshd::compile
