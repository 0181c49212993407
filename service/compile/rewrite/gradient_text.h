// The text of the program that computes gradients of another one (program/gradient/gradient.h).
#pragma once

#include <string>
#include <vector>

#include "service/compile/pipeline.h"

namespace meshd::compile {

/// What is differentiated, in positions that clients count: without tokens.
struct DifferentiationRequest {
  std::vector<size_t> arguments;
  std::vector<size_t> results;
  bool keeps_results = false;
  bool takes_cotangents = false;
};

/// StableHLO in generic form, to be registered as any other program. Throws invalid_argument for positions that there
/// are none of and for types without derivatives, unsupported_type for programs with dynamic dimensions, unsupported_op
/// as program::gradient.
std::string gradient_text(const ParsedProgram& parsed, const DifferentiationRequest& request);

}  // namespace meshd::compile
