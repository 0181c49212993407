// Finds loops of short steps, whose kernels are called one after the other by one thread.
//
// A step costs some 100 ns beside its kernel: what it reads and writes is looked up, budgets are charged, whether
// several threads share it is decided. In a loop all of that is the same in each iteration, but for slots that are
// exchanged; and after two iterations these are where they were, as a rule. So the calls of two iterations are made
// once (device/bound_while.h), and budgets are looked at once for many iterations. Loops whose slots are elsewhere
// after two iterations are executed step by step.
//
// A loop has this form where
//   1. its steps are kernels, collectives, or in the body alone loops that have it or are small (small_whiles.h), and
//      branches of such steps;
//   2. all devices have one condition and take one branch, and a loop in it that exchanges slots has a known number of
//      iterations, exactly (program/analysis/counted_loop.h), so that it is known where its slots are behind it;
//   3. no step is there for its error alone, which is named.
// Whether steps are short enough is looked at when the loop is executed (device/run_bound_while.cpp).
//
// Example: while i < 100: w = a @ v; v = w / norm(w); i = i + 1. Five calls an iteration, bound twice: v is read in one
// slot and written in another.
#pragma once

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// Sets Step::bound of the plan's loops. Needs slots, tables, and Step::small.
void find_bound_whiles(Plan& plan);

}  // namespace meshd::compile
