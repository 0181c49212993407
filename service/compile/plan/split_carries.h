// Arrays that a loop carries and puts together of rows, as rows (scalar replacement of aggregates).
//
// A state of a few long rows, as `jnp.stack([dx, dy, dz])` makes it, is put together at the end of each iteration and
// taken apart at the beginning of the next. Where all that is done to it is done row by row, the loop carries the rows:
// nothing is copied, and a loop of small steps (small_whiles.h) has its lanes one by one.
//
// 1. Candidates: carried arrays of two to eight rows along a dim that is not sharded, which the body makes by a
//    concatenation of single rows, and by pointwise ops on such.
// 2. What is split along with them: pointwise ops on split values, splats and broadcasts of other dims; the same with
//    more dims of size one. A candidate whose result is not split is none, and the rest is looked at again.
// 3. The body is written anew, op by op, a row each. A slice of one row reads it; a dynamic_update_slice of an array
//    that is not sharded writes one row after the other; whatever else reads a split value reads a concatenation.
// 4. In front of the loop the initial values are sliced, behind it the rows are put together.
//
// Example: s is 3x1000; s = s + 0.01 * stack([10 * (s[1] - s[0]), ...]). Out: x, y, z of 1x1000; x = x + 0.01 * (10 *
// (y - x)), and so on.
#pragma once

#include <optional>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// The program with such loops written anew; nothing where there are none. Results have the same bits. Any thread.
std::optional<partition::LocalProgram> split_carries(const partition::LocalProgram& program,
                                                     const PlanSettings& settings);

}  // namespace meshd::compile
