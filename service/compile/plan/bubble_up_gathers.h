// What is done to gathers of computed values before steps are made of a local program.
#pragma once

#include <optional>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// The program with gathers of few elements in front of the pointwise ops that made what they gather; nothing where
/// there are none. Results have the same bits. Any thread.
std::optional<partition::LocalProgram> bubble_up_gathers(const partition::LocalProgram& program,
                                                         const PlanSettings& settings);

}  // namespace meshd::compile
