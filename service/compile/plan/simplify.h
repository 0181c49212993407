// What XLA does to a program before it fuses: constants are folded, and what is computed twice is computed once.
#pragma once

#include <optional>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// The program without ops whose results are constants, or operands, or results of earlier ops; nothing where there are
/// none. Results have the same bits, but for sums of many f32 (PlanSettings::simplify). Any thread. Throws what making
/// steps of the program would throw.
std::optional<partition::LocalProgram> simplify(const partition::LocalProgram& program, const PlanSettings& settings);

}  // namespace meshd::compile
