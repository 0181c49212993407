// Compares the number of a request's arguments with the program's, and names those that are too many or missing: jit
// drops arguments that a function does not use, and exports for several platforms take the platform first. Pure; any
// thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "service/compile/pipeline.h"

namespace meshd::jobs {

/// What is known of an argument before it is read. Bare lists have a shape and no dtype.
struct GivenArgument {
  std::optional<tensor::DType> dtype = std::nullopt;
  std::optional<std::vector<int64_t>> dims = std::nullopt;
};

/// Throws invalid_argument where the program takes another number of arguments, with /arguments/I for each that is too
/// many. Example: @main(tensor<3xf32>, tensor<2xf32>) given (3, 5, 2) float32: number 1 is named, because without it,
/// and in no other way, the others fit.
void check_argument_count(const compile::ParsedProgram& program, std::span<const GivenArgument> given);

}  // namespace meshd::jobs
