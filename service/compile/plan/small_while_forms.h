// Writes ops of loops in forms that loops of small steps take (small_whiles.h), where all else in the loop is small.
//
//   1. A product of few terms: term by term, of elements that move to the lanes of the result.
//   2. A reduction of several operands, such as argmax: item by item, with its region as pointwise ops.
//   3. A column that dynamic_slice takes of an array which does not change: a row of the transposed array. That is made
//      in front of the loop, once for all columns of an array.
//
// Example, a step of a hidden Markov model: s = dot(s, a) * dynamic_slice(b, 0, o), s f32[4]. Out: in front of the loop
// bt = transpose(b); in it s = (s[0] * a[0, :] + s[1] * a[1, :] + ...) * dynamic_slice(bt, o, 0). The loop becomes
// machine code that keeps s in a register.
#pragma once

#include <optional>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// The program with such loops written anew; nothing where there are none. Sums of f32, and results of regions that are
/// not associative, may be others: they are folded from left to right. Any thread.
std::optional<partition::LocalProgram> write_small_while_forms(const partition::LocalProgram& program,
                                                               const PlanSettings& settings);

}  // namespace meshd::compile
