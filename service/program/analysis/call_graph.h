// The call graph: func.call and stablehlo.composite name functions.
#pragma once

#include <string>
#include <vector>

#include "service/ir/program.h"

namespace meshd::program {

/// The function that this op calls, or empty.
std::string callee_of(const ir::Op& op);

/// Functions in an order in which callees come before their callers, as indices into module.functions.
/// Throws invalid_program at the call's line on unknown callees, recursion, and calls that nest more than kMaxCallDepth
/// deep.
std::vector<size_t> callees_first(const ir::Module& module);

inline constexpr int kMaxCallDepth = 256;

}  // namespace meshd::program
