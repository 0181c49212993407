// What regions read from around them: MLIR's RegionUtils.
#pragma once

#include <span>
#include <vector>

#include "service/ir/program.h"

namespace meshd::ir {

/// Values that the regions, and those within, read and none of them defines, each once, in the order in which they are
/// read. MLIR: getUsedValuesDefinedAbove.
///
/// Example: {%1 = add %a, %b; %2 = case %i {return %1} {return %a}; return %2} -> %a, %b, %i
std::vector<ValueId> used_values_defined_above(std::span<const Region* const> regions);
/// The same of regions side by side, such as those of one op.
std::vector<ValueId> used_values_defined_above(std::span<const Region> regions);

}  // namespace meshd::ir
