// Loops of a few iterations, written one iteration after the other (XLA's while loop unroller).
//
// A loop whose number of iterations is known and small, and whose body only computes element by element, keeps its
// values in memory from one iteration to the next for no other reason than that it is a loop. Unrolled, its iterations
// are fused; and a loop around it may become one of small steps (small_whiles.h).
//
// Example: the five groups of rounds of Threefry, as JAX's random numbers have them. In:
//   while (i = 0, x = a, y = b, r = [13, 15, 26, 6], s = [17, 29, 16, 24]) i < 5 { ... return i + 1, x', y', s, r }
// Out: five times the body, where each slice of r and s is one of a constant, and no i.
#pragma once

#include <optional>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// The program with such loops unrolled; nothing where there are none. Results have the same bits. Any thread.
std::optional<partition::LocalProgram> unroll_whiles(const partition::LocalProgram& program,
                                                     const PlanSettings& settings);

}  // namespace meshd::compile
