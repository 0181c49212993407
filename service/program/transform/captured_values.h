// Values that the regions of reductions, windows, scatters, sorts and maps read from around them. A kernel's region
// sees its arguments only: constants are copied into the region, other scalars become operands of the op. Used by
// specialise.h.
//
// Example: the operand %s1 is %s broadcast to %x's dimensions, the region's %l1 and %r1 are always %s
//   %0 = reduce(%x init: %c) {(%l, %r): %1 = multiply %r, %s; return add %l, %1}
//   %0, %1 = reduce(%x, %s1 init: %c, %s) {(%l, %l1, %r, %r1): %1 = multiply %r, %l1; return add %l, %1, %l1}
#pragma once

#include <functional>
#include <vector>

#include "service/ir/program.h"
#include "service/ops/evaluate.h"

namespace meshd::program {

/// True when a region of `op` reads values from around it that take_captured_values would have to give it.
bool captures_values(const ir::Op& op);

/// Makes the regions of `op` read nothing but their arguments. `known` are bytes of values that are known before the
/// program runs, or null; ops that `op` then needs are appended to `before`. Shapes are static. A value that is no
/// scalar is left as it is, and so is everything where no operand can be added (select_and_scatter): its kernel refuses
/// it by name.
void take_captured_values(ir::Function& function, ir::Op& op, const std::function<ops::SmallValue(ir::ValueId)>& known,
                          std::vector<ir::Op>& before);

}  // namespace meshd::program
