// The inliner: copies a module with all calls inlined into @main, as Shardy's import does before propagation.
#pragma once

#include "service/ir/program.h"

namespace meshd::program {

/// A module whose only function is @main (and those that custom calls name in called_computations), without func.call
/// and stablehlo.composite: bodies are copied in with fresh values, and Location.calls of a copied op has the lines of
/// the calls that led to it, outermost first. Each call becomes an entry of Module::inlined_calls (Location.frame
/// numbers them), which keeps its and the callee's shardings; ops are inserted only where values at its edges would not
/// be told apart (ops/collective/sdy_collectives.h), and ops of one copy are contiguous. Throws invalid_program on
/// recursion, unknown callees and more than `max_ops` ops.
ir::Module inline_calls(const ir::Module& module, int64_t max_ops = 4'000'000);

}  // namespace meshd::program
