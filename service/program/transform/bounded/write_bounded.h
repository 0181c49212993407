// Ops on values whose sizes depend on data, written over static values of the bounds' shapes (bounded_values.h): what
// XLA's dynamic padder and dynamic dimension inference do. Sizes pass along; where padding would be computed with, it
// is replaced by what changes nothing first.
//
// Example, %0 of type tensor<?xf32, #stablehlo.bounds<8>> with %n elements:
//   reduce(%0, 0) with add   ->   reduce(select(iota < %n, %0, 0), 0) with add
//   concatenate %0, %0       ->   zeros of 16; update at 0; update at %n; the size is %n + %n
#pragma once

#include <vector>

#include "service/program/transform/bounded/bounded_op.h"

namespace meshd::program {

/// Writes an op one of whose operands or results has a size that depends on data. `operands`: by operand; tokens are
/// whole values. Returns the results; nothing where the op has no such form. Control flow is not its business.
BoundedResults write_bounded(const ir::Op& op, const std::vector<BoundedValue>& operands, ops::Writer& writer);

}  // namespace meshd::program
