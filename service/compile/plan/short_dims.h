// What is done to reductions over dims of few elements (coordinates of points, conditions of a choice) before steps are
// made of a local program.
#pragma once

#include <optional>

#include "service/compile/plan/plan.h"

namespace meshd::compile {

/// The program with such reductions element by element of the short dim; nothing where there are none. Floats are added
/// as floats, as XLA adds them, or in another order: last bits may be others. Any thread.
std::optional<partition::LocalProgram> split_short_dims(const partition::LocalProgram& program,
                                                        const PlanSettings& settings);

}  // namespace meshd::compile
