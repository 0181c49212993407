#include "service/compile/rewrite/gradient_text.h"

#include <fmt/core.h>

#include "service/core/error.h"
#include "service/program/gradient/gradient.h"
#include "service/program/print.h"
#include "service/program/transform/specialise.h"

namespace meshd::compile {
namespace {

// Positions without tokens as positions with them.
std::vector<size_t> positions_with_tokens(const std::vector<size_t>& wanted, const std::vector<size_t>& positions,
                                          const char* what) {
  std::vector<size_t> out;
  for (const size_t i : wanted) {
    if (i >= positions.size()) {
      throw core::Error("invalid_argument",
                        fmt::format("there is no {} {}: the program has {}", what, i, positions.size()));
    }
    out.push_back(positions[i]);
  }
  return out;
}

}  // namespace

std::string gradient_text(const ParsedProgram& parsed, const DifferentiationRequest& request) {
  if (parsed.needs_trace()) {
    throw core::Error("unsupported_format",
                      "a program of NumPy syntax has no types before it is traced: call jax.grad in its text, or post "
                      "the StableHLO that :stablehlo gives and differentiate that");
  }
  if (program::has_dynamic_shapes(*parsed.flat)) {
    throw core::Error("unsupported_type",
                      "the derivative of a program with dynamic dimensions is not supported; post a program with "
                      "static shapes");
  }
  if (parsed.has_bounded_results()) {
    throw core::Error(
        "unsupported_type",
        "the derivative of a program whose results have sizes that depend on data is not supported; give "
        "it results of known sizes, such as what stablehlo.dynamic_pad with a static result type makes of them");
  }
  program::GradientRequest wanted;
  wanted.arguments = positions_with_tokens(request.arguments, parsed.arguments, "argument");
  wanted.results = positions_with_tokens(request.results, parsed.results, "result");
  wanted.keeps_results = request.keeps_results;
  wanted.takes_cotangents = request.takes_cotangents;
  return core::in_text(parsed.text, {}, [&] {
    return program::print_generic(program::gradient(program::specialise(*parsed.flat), wanted));
  });
}

}  // namespace meshd::compile
