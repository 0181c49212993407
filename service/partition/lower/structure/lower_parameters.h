// Lowers arguments and results of @main, in the layouts that their shardings resolve to.
//
// Example, mesh x=2, y=4: %a 8x16 [{x}, {}] -> result [{}, {x}]. The argument is 4x16; the result takes a reshard
// 4x16 -> 8x8, an all-to-all over x in which a device receives 64 - 32 elements.
#pragma once

#include <map>
#include <vector>

#include "service/partition/lower/context.h"

namespace meshd::partition {

/// The values that @main returns with the layouts of the results, for LoweringContext::returned. Unreduced results, and
/// results sharded over axes that their value does not have, are left to lower_results().
std::multimap<ir::ValueId, ReturnedValue> returned_values(const LoweringContext& context);
/// Appends the arguments to `body` and to the program.
void lower_arguments(LoweringContext& context, LocalBlock& body);
/// Reshards the values that @main returns, and appends them to `body` and to the program.
void lower_results(LoweringContext& context, const std::vector<ir::ValueId>& returned, LocalBlock& body);

}  // namespace meshd::partition
