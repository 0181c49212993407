// Reverse-mode differentiation of a program: jax.grad, jax.value_and_grad and jax.vjp over StableHLO.
#pragma once

#include <vector>

#include "service/ir/program.h"

namespace meshd::program {

/// What is differentiated. Numbers count the parameters of @main, tokens too.
struct GradientRequest {
  std::vector<size_t> arguments;  ///< with respect to these; each floating-point or complex
  std::vector<size_t> results;    ///< of the sum of these; each floating-point or complex
  bool keeps_results = false;     ///< all results of the program are in front of the gradients (value_and_grad)
  /// Cotangents of `results` are further arguments, in order (vjp). Else each of them is a scalar, whose cotangent
  /// is 1.
  bool takes_cotangents = false;
};

/// The program whose results are the gradients, with the types of their arguments and in their order. `flat` is inlined
/// (transform/inline_calls.h) and specialised to static shapes. Tokens among the results stay, in front of all others;
/// arguments are no longer donated. Derivatives are the rows' (ops::OpDef::derivative).
///
/// Throws invalid_argument for arguments and results that cannot be differentiated, and unsupported_op, naming op and
/// line, where a derivative is needed that there is none of: of a while loop, where the text does not tell how often it
/// runs, of what calls the client, and of ops without a rule. The text's ops are differentiated, not the function that
/// was traced: custom derivatives and stop_gradient, which a text does not have, are unknown here.
///
/// Example: f(x, w) = sum(sine(x * w)), gradient of argument 1
///   -> g(x, w): %0 = x * w; %1 = cosine(%0); %2 = 1 repeated; %3 = %2 * %1; return %3 * x
ir::Module gradient(const ir::Module& flat, const GradientRequest& request);

}  // namespace meshd::program
